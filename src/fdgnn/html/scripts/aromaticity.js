// Aromatic rings, by the rule of RDKit in short: a ring, or two that share a bond, whose atoms give 4n + 2
// electrons. Rings written with alternating double bonds become aromatic as the model's own reading makes them.

import { described, ringEdges } from "./chemistry.js";

const LONGEST = 8; // atoms of a ring that is looked at
const PULLING = new Set(["N", "O", "S", "F", "Cl", "Br", "I", "Se"]); // take the electron of a double bond to carbon

// The shortest ring through each bond, as lists of atoms; each ring once.
function ringsOf(n, bonds) {
  const near = Array.from({ length: n }, () => []), inRing = ringEdges(n, bonds), found = new Map();
  bonds.forEach(({ u, v }, e) => {
    near[u].push([v, e]);
    near[v].push([u, e]);
  });
  bonds.forEach(({ u, v }, e) => {
    if (!inRing[e]) return;
    const from = new Map([[u, -1]]), queue = [u];
    for (const w of queue) {
      if (w === v) break;
      for (const [next, other] of near[w]) if (other !== e && inRing[other] && !from.has(next)) {
        from.set(next, w);
        queue.push(next);
      }
    }
    const ring = [];
    for (let w = v; w !== -1 && w !== undefined; w = from.get(w)) ring.push(w);
    if (ring.length <= LONGEST) found.set([...ring].sort((a, b) => a - b).join(" "), ring);
  });
  return [...found.values()];
}

// How many electrons an atom gives to a ring; null if it cannot be part of an aromatic one.
function electronsOf(atom, own, inRing) {
  const { element, charge, hydrogens } = atom;
  const double = own.filter(({ order }) => order === 2);
  if (double.length > 1 || own.some(({ order }) => order === 3)) return null;
  const cyclic = own.some(({ order, e }) => inRing[e] && (order === 2 || order === 1.5));
  const outside = double.find(({ e }) => !inRing[e]);
  if (outside) return element === "C" && PULLING.has(outside.other) ? 0 : null;
  const single = own.length + hydrogens;
  if (cyclic) {
    if (element === "C") return charge === 0 ? 1 : null;
    if (element === "N" || element === "P") return charge === 0 && single === 3 && !double.length ? 2 : charge <= 0 || single === 3 ? 1 : null;
    if ((element === "O" || element === "S" || element === "Se") && !double.length) return 2;
    return charge === 1 ? 1 : null;
  }
  if (element === "N" || element === "P") return charge === 0 && single === 3 ? 2 : charge === -1 && single === 2 ? 2 : null;
  if (element === "O" || element === "S" || element === "Se") return charge === 0 && single === 2 ? 2 : null;
  return element === "C" && charge === -1 ? 2 : element === "B" ? 0 : null;
}

// Atoms and bonds with aromatic rings marked; hydrogens are those of the bonds as they were written.
export function withAromaticRings(atoms, bonds) {
  const plain = described(atoms, bonds).map((found, v) => ({ ...atoms[v], hydrogens: atoms[v].hydrogens ?? found.hydrogens }));
  const inRing = ringEdges(atoms.length, bonds), own = atoms.map(() => []);
  bonds.forEach(({ u, v, order }, e) => {
    own[u].push({ order, e, other: atoms[v].element });
    own[v].push({ order, e, other: atoms[u].element });
  });
  const electrons = plain.map((atom, v) => electronsOf(atom, own[v], inRing));
  const rings = ringsOf(atoms.length, bonds).filter((ring) => ring.length > 4 && ring.every((v) => electrons[v] !== null));
  const fits = (vertices) => vertices.reduce((sum, v) => sum + electrons[v], 0) % 4 === 2;
  const marked = new Set(), edges = new Set();
  const mark = (ring, shared = []) => ring.forEach((v, i) => {
    const next = ring[(i + 1) % ring.length];
    marked.add(v);
    if (!(shared.includes(v) && shared.includes(next))) edges.add(`${Math.min(v, next)} ${Math.max(v, next)}`);
  });
  const aromatic = rings.filter(fits);
  for (const ring of aromatic) mark(ring);
  // Of two rings that are aromatic only together, as in azulene, the bond that they share is not.
  rings.forEach((a, i) => rings.slice(i + 1).forEach((b) => {
    const shared = a.filter((v) => b.includes(v));
    if (shared.length !== 2 || (aromatic.includes(a) && aromatic.includes(b))) return;
    if (fits([...new Set([...a, ...b])])) [a, b].forEach((ring) => mark(ring, aromatic.includes(ring) ? [] : shared));
  }));
  const settled = (bond) => {
    const { u, v, implied } = bond;
    if (edges.has(`${Math.min(u, v)} ${Math.max(u, v)}`)) return { u, v, order: 1.5 };
    // Between two aromatic rings there is a single bond, though nothing was written.
    return { u, v, order: implied && marked.has(u) && marked.has(v) ? 1 : bond.order };
  };
  return { atoms: plain.map((atom, v) => ({ ...atom, aromatic: atom.aromatic || marked.has(v) })), bonds: bonds.map(settled) };
}
