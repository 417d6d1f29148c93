// Molecules as the model reads them: atoms with their hydrogens, rings and types (fdgnn/graphs/molecules.py).
//
// What the page does not do: it finds no aromatic rings. A ring is aromatic if it was so when it came, or if
// its bonds are set to aromatic by hand.

const ELEMENTS = ["H", "B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "Se", "Br", "I"];
const VALENCES = new Map(Object.entries({
  H: [1], B: [3], C: [4], N: [3], O: [2], F: [1], Si: [4], P: [3, 5], S: [2, 4, 6], Cl: [1], Se: [2, 4, 6],
  Br: [1], I: [1, 3, 5],
}));
// A charged atom has the valences of the element with as many electrons.
const ROWS = [["B", "C", "N", "O", "F"], ["Al", "Si", "P", "S", "Cl"]];
export const BOND_NAMES = new Map([[1, "single"], [1.5, "aromatic"], [2, "double"], [3, "triple"]]);
export const BOND_ORDERS = new Map([...BOND_NAMES].map(([order, name]) => [name, order]));

function valencesOf({ element, charge }) {
  if (!charge) return VALENCES.get(element) ?? [];
  const row = ROWS.find((each) => each.includes(element));
  const like = row && row[row.indexOf(element) - charge];
  return VALENCES.get(like) ?? [];
}

// The hydrogens that fill an atom up to its next valence; `over` if its bonds are more than it can have.
export function hydrogensOf(atom, bonds) {
  const valences = valencesOf(atom);
  if (atom.aromatic || !valences.length) return { hydrogens: Math.max(0, Math.floor((valences[0] ?? 0) - bonds)), over: false };
  const room = valences.find((valence) => valence >= bonds);
  return room === undefined ? { hydrogens: 0, over: true } : { hydrogens: Math.floor(room - bonds), over: false };
}

// The neighbors of each vertex, [[u, e], ...], over edge e.
function neighborsOf(n, edges) {
  const near = Array.from({ length: n }, () => []);
  edges.forEach(({ u, v }, e) => {
    near[u].push([v, e]);
    near[v].push([u, e]);
  });
  return near;
}

// Which edges lie on a ring: an edge beside a spanning tree, and the way between its ends in the tree.
export function ringEdges(n, edges) {
  const near = neighborsOf(n, edges), found = new Uint8Array(edges.length);
  const depth = new Int32Array(n).fill(-1), parent = new Int32Array(n), up = new Int32Array(n).fill(-1);
  for (let start = 0; start < n; start++) {
    if (depth[start] >= 0) continue;
    depth[start] = 0;
    const queue = [start];
    for (const v of queue)
      for (const [u, e] of near[v]) if (depth[u] < 0) {
        [depth[u], parent[u], up[u]] = [depth[v] + 1, v, e];
        queue.push(u);
      }
  }
  edges.forEach(({ u, v }, e) => {
    if (up[u] === e || up[v] === e) return;
    found[e] = 1;
    while (u !== v) {
      if (depth[u] < depth[v]) [u, v] = [v, u];
      found[up[u]] = 1;
      u = parent[u];
    }
  });
  return found;
}

// What follows from atoms and bonds: degree, bond sum, hydrogens, in a ring, for each atom.
// An atom that came with its hydrogens keeps them until its bonds, element or charge are changed.
export function described(atoms, bonds) {
  const degree = atoms.map(() => 0), sum = atoms.map(() => 0), ring = atoms.map(() => false);
  const multiple = atoms.map(() => 0), aromaticBonds = atoms.map(() => 0);
  const inRing = ringEdges(atoms.length, bonds);
  bonds.forEach(({ u, v, order }, e) => {
    for (const end of [u, v]) {
      degree[end] += 1;
      sum[end] += order;
      multiple[end] = Math.max(multiple[end], order);
      if (order === 1.5) aromaticBonds[end] += 1;
      if (inRing[e]) ring[end] = true;
    }
  });
  return atoms.map((atom, v) => {
    const aromatic = atom.aromatic && aromaticBonds[v] > 0;
    const key = keyOf(atom, sum[v]);
    const computed = hydrogensOf({ ...atom, aromatic }, sum[v]);
    const kept = atom.given?.key === key;
    return {
      ...atom, aromatic, degree: degree[v], ring: ring[v], bonds: sum[v], multiple: multiple[v], key,
      hydrogens: kept ? atom.given.hydrogens : computed.hydrogens, over: !kept && computed.over,
    };
  });
}

const keyOf = ({ element, charge }, sum) => `${element} ${charge} ${sum}`;

// The label of an atom, as `atoms` of the reading says: its element, or its type.
export function atomLabel(atom, how) {
  if (how === "element") return atom.element;
  const charge = atom.charge ? ` ${atom.charge > 0 ? "+" : "-"}${Math.abs(atom.charge)}` : "";
  return `${atom.element} ${atom.degree} H${atom.hydrogens}${charge}${atom.aromatic ? " aromatic" : ""}${atom.ring ? " ring" : ""}`;
}

// The features of an atom where the model reads numbers. Hybridization is estimated from the bonds.
export function atomFeatures(atom, n_features) {
  const element = ELEMENTS.map((symbol) => Number(symbol === atom.element));
  const sp = atom.multiple === 3, sp2 = !sp && (atom.multiple >= 1.5 || atom.aromatic);
  const found = [
    ...element, Number(!ELEMENTS.includes(atom.element)), atom.charge, atom.hydrogens,
    Number(atom.aromatic), Number(atom.ring), Number(sp), Number(sp2), Number(!sp && !sp2),
  ];
  while (found.length < n_features) found.push(0);
  return found;
}

// ---------------------------------------------------------------------- aromaticity

// Aromatic rings, by the rule of RDKit in short: a ring, or two that share a bond, whose atoms give 4n + 2
// electrons. Rings written with alternating double bonds become aromatic as the model's own reading makes them.


const LONGEST = 8; // atoms of a ring that is looked at
const PULLING = new Set(["N", "O", "S", "F", "Cl", "Br", "I", "Se"]); // take the electron of a double bond to carbon

// The shortest ring through each bond, as lists of atoms; each ring once.
function ringsOf(n, bonds) {
  const near = neighborsOf(n, bonds), inRing = ringEdges(n, bonds), found = new Map();
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
