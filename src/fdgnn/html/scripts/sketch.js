// The graph on the canvas with undo and redo, and molecules as the model reads them: atoms with their
// hydrogens, rings and types (fdgnn/graphs/molecules.py).

import { freePlace } from "./layout.js";

// ---------------------------------------------------------------------- atoms and bonds

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

// The hydrogens that fill an atom up to its next valence; `over` if it has too many bonds.
function hydrogensOf(atom, bonds) {
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

// Which edges lie on a ring: an edge that is not in a spanning tree, and the path between its ends in the tree.
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

// Properties derived from atoms and bonds: degree, bond sum, hydrogens, in a ring, for each atom.
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

// The label of an atom, by the rule `atoms` of the input schema: its element, or its type.
function atomLabel(atom, how) {
  if (how === "element") return atom.element;
  const charge = atom.charge ? ` ${atom.charge > 0 ? "+" : "-"}${Math.abs(atom.charge)}` : "";
  return `${atom.element} ${atom.degree} H${atom.hydrogens}${charge}${atom.aromatic ? " aromatic" : ""}${atom.ring ? " ring" : ""}`;
}

// The features of an atom if the model reads features. Hybridization is estimated from the bonds.
function atomFeatures(atom, n_features) {
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

// Aromatic rings, by a simplified rule of RDKit: a ring, or two that share a bond, whose atoms give 4n + 2 electrons.
// Rings written with alternating double bonds become aromatic as the model's reader makes them.

const LONGEST = 8; // atoms of a ring that is considered
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

// ---------------------------------------------------------------------- the graph on the canvas

// A vertex is {label, x, y, features, atom}, an edge {u, v, label, weight, order}; atom and order only where
// graphs are molecules. Every change gives a new sketch; earlier ones do not change.
export class Sketch {
  constructor(vertices, edges, directed = false) {
    this.vertices = vertices;
    this.edges = edges;
    this.directed = directed;
  }

  find(u, v) {
    return this.edges.findIndex((e) => (e.u === u && e.v === v) || (!this.directed && e.u === v && e.v === u));
  }

  withVertices(change) {
    return new Sketch(this.vertices.map(change), this.edges, this.directed);
  }

  moved(v, x, y) {
    return this.withVertices((vertex, i) => (i === v ? { ...vertex, x, y } : vertex));
  }

  relabeled(v, fields) {
    return this.withVertices((vertex, i) => (i === v ? { ...vertex, ...fields } : vertex));
  }

  withVertex(vertex) {
    return new Sketch([...this.vertices, vertex], this.edges, this.directed);
  }

  withEdge(edge) {
    if (this.find(edge.u, edge.v) >= 0) return this;
    return new Sketch(this.vertices, [...this.edges, edge], this.directed);
  }

  withoutVertex(v) {
    const edges = this.edges.filter((e) => e.u !== v && e.v !== v)
      .map((e) => ({ ...e, u: e.u - (e.u > v), v: e.v - (e.v > v) }));
    return new Sketch(this.vertices.filter((_, i) => i !== v), edges, this.directed);
  }

  withoutEdge(e) {
    return new Sketch(this.vertices, this.edges.filter((_, i) => i !== e), this.directed);
  }

  changedEdge(e, fields) {
    return new Sketch(this.vertices, this.edges.map((edge, i) => (i === e ? { ...edge, ...fields } : edge)), this.directed);
  }
}

// The history of sketches, across graphs. An entry has the `sketch`, the sketch that its graph began as (`first`), the
// number of the graph among the page's examples (`example`, or null), and whether anything but positions was changed
// since (`edited`).
export class History {
  constructor() {
    this.past = [];
    this.place = -1;
  }

  get entry() {
    return this.past[this.place];
  }

  get now() {
    return this.entry.sketch;
  }

  get untouched() {
    return this.entry.sketch === this.entry.first;
  }

  // Start another graph. Examples that were only viewed are not kept, so that browsing does not bury changes.
  begin(first, example = null) {
    if (this.entry && this.untouched && this.entry.example !== null && example !== null) this.place -= 1;
    this.push({ sketch: first, first, example, edited: false });
  }

  add(sketch, moved = false) {
    if (sketch !== this.now) this.push({ ...this.entry, sketch, edited: this.entry.edited || !moved });
  }

  // Replace the current sketch without an entry in the history.
  replace(sketch) {
    this.past[this.place] = { ...this.entry, sketch };
  }

  // Restore the first sketch of the graph; this can also be undone.
  reset() {
    if (!this.untouched) this.push({ ...this.entry, sketch: this.entry.first, edited: false });
  }

  push(entry) {
    this.past = [...this.past.slice(0, this.place + 1), entry].slice(-500);
    this.place = this.past.length - 1;
  }

  undo() {
    this.place = Math.max(0, this.place - 1);
  }

  redo() {
    this.place = Math.min(this.past.length - 1, this.place + 1);
  }
}

// ---------------------------------------------------------------------- atoms

// Keep the label and the hydrogens that each atom came with; they are valid until it is changed.
export function withGivenAtoms(sketch) {
  const bare = atomsOf(sketch);
  const atoms = sketch.vertices.map(({ atom }, v) => (
    { ...atom, given: { key: bare[v].key, hydrogens: atom.hydrogens ?? bare[v].hydrogens } }));
  const found = described(atoms, sketch.edges);
  return sketch.withVertices((vertex, v) => {
    const came = { label: vertex.label, features: vertex.features, as: atomLabel(found[v], "typed") };
    return { ...vertex, atom: atoms[v], came: vertex.label ?? vertex.features ? came : null };
  });
}

export const atomsOf = (sketch) => described(sketch.vertices.map((vertex) => vertex.atom), sketch.edges);

// ---------------------------------------------------------------------- input of the model

// The graph in the form that encoders use. In a molecule labels follow from atoms and bonds, by the model's `rules`.
export function graphOf(sketch, kind, rules) {
  const { vertices, edges } = sketch;
  const graph = {
    n: vertices.length, directed: sketch.directed,
    edges: edges.map((e) => [e.u, e.v]),
    labels: kind.vertices === "labels" ? vertices.map((vertex) => vertex.label) : null,
    features: null, edgeLabels: null, weights: null,
  };
  if (edges.some((e) => e.label !== null && e.label !== undefined)) graph.edgeLabels = edges.map((e) => e.label);
  if (edges.some((e) => e.weight !== null && e.weight !== undefined)) graph.weights = edges.map((e) => e.weight ?? 1);
  let rows = vertices.map((vertex) => vertex.features);
  if (rules) {
    const atoms = atomsOf(sketch);
    const same = (v) => vertices[v].came?.as === atomLabel(atoms[v], "typed");
    if (graph.labels) graph.labels = atoms.map((atom, v) => (same(v) ? vertices[v].came.label : atomLabel(atom, rules.atoms)));
    rows = atoms.map((atom, v) => (same(v) ? vertices[v].came.features : atomFeatures(atom, kind.n_inputs)));
    graph.edgeLabels = rules.edge_labels === "labels" ? edges.map((e) => e.label ?? BOND_NAMES.get(e.order)) : null;
    graph.weights = rules.edge_labels === "weights" ? edges.map((e) => e.order) : null;
  }
  if (kind.vertices === "features") graph.features = Float64Array.from(rows.flatMap((row) => [...row]));
  return graph;
}

// ---------------------------------------------------------------------- edits

const MOST = 4000; // changes that are tried

// `palette`: labels and edgeLabels that vertices and edges may have, elements and whether graphs are molecules.
export function singleEdits(sketch, palette) {
  return (palette.molecules ? moleculeEdits : plainEdits)(sketch, palette).slice(0, MOST);
}

function plainEdits({ vertices, edges, directed }, { labels, edgeLabels }) {
  const found = [], n = vertices.length;
  if (n > 1) vertices.forEach((_, v) => found.push({ kind: "delete vertex", v }));
  edges.forEach((_, e) => found.push({ kind: "delete edge", e }));
  vertices.forEach(({ label }, v) => (labels ?? []).forEach((other) => {
    if (other !== label) found.push({ kind: "relabel", v, label: other });
  }));
  edges.forEach(({ label }, e) => (edgeLabels ?? []).forEach((other) => {
    if (other !== label) found.push({ kind: "change edge", e, label: other });
  }));
  const linked = new Set(edges.flatMap(({ u, v }) => (directed ? [`${u} ${v}`] : [`${u} ${v}`, `${v} ${u}`])));
  for (let u = 0; u < n; u++)
    for (let v = directed ? 0 : u + 1; v < n; v++)
      if (u !== v && !linked.has(`${u} ${v}`)) {
        const label = edgeLabels?.length ? commonest(edges, edgeLabels) : null;
        found.push({ kind: "add edge", u, v, label });
      }
  return found;
}

function commonest(edges, edgeLabels) {
  const counts = new Map();
  for (const { label } of edges) counts.set(label, (counts.get(label) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? edgeLabels[0];
}

// Keep changes that leave a valid molecule: connected, no atom with too many bonds, and no aromatic ring broken.
function moleculeEdits(sketch, palette) {
  const { vertices, edges } = sketch, atoms = atomsOf(sketch), found = [];
  const pieces = n_parts(sketch);
  atoms.forEach((atom, v) => {
    if (!atom.aromatic) found.push({ kind: "delete vertex", v });
    for (const element of palette.elements) {
      if (element === atom.element || atom.charge) continue;
      if (atom.aromatic && !(["C", "N"].includes(element) && ["C", "N"].includes(atom.element) && atom.degree === 2)) continue;
      found.push({ kind: "relabel", v, element });
    }
    if (atom.hydrogens > 0) for (const element of palette.elements) found.push({ kind: "add atom", v, element });
  });
  edges.forEach(({ order }, e) => {
    if (order === 1.5) return;
    found.push({ kind: "delete edge", e });
    for (const other of [1, 2, 3]) if (other !== order) found.push({ kind: "change edge", e, order: other });
  });
  for (let u = 0; u < vertices.length; u++)
    for (let v = u + 1; v < vertices.length; v++)
      if (atoms[u].hydrogens && atoms[v].hydrogens && sketch.find(u, v) < 0) found.push({ kind: "add edge", u, v, order: 1 });
  return found.filter((edit) => {
    const after = applied(sketch, edit, palette);
    return after.vertices.length > 0 && n_parts(after) <= pieces && !atomsOf(after).some((atom, v) => atom.over && !atoms[v]?.over);
  });
}

function n_parts({ vertices, edges }) {
  const root = vertices.map((_, v) => v);
  const find = (v) => { while (root[v] !== v) v = root[v] = root[root[v]]; return v; };
  for (const { u, v } of edges) root[find(u)] = find(v);
  return root.filter((r, v) => r === v).length;
}

// The sketch after a change.
export function applied(sketch, edit, palette) {
  const { kind } = edit;
  if (kind === "delete vertex") return sketch.withoutVertex(edit.v);
  if (kind === "delete edge") return sketch.withoutEdge(edit.e);
  if (kind === "relabel") return relabeled(sketch, edit.v, palette, edit);
  if (kind === "change edge") return sketch.changedEdge(edit.e, palette.molecules ? { order: edit.order, label: null } : { label: edit.label });
  if (kind === "add edge") return sketch.withEdge(newEdge(edit.u, edit.v, palette, edit));
  const [x, y] = freePlace(sketch.vertices, edit.v);
  const grown = sketch.withVertex(newVertex(x, y, palette, edit, sketch.vertices[edit.v]));
  return grown.withEdge(newEdge(edit.v, sketch.vertices.length, palette, edit));
}

function relabeled(sketch, v, palette, { element, label }) {
  if (!palette.molecules) return sketch.relabeled(v, { label });
  const { atom } = sketch.vertices[v];
  return sketch.relabeled(v, { atom: { ...atom, element, given: element === atom.element ? atom.given : null } });
}

export function newVertex(x, y, palette, { element, label = null }, like = null) {
  if (palette.molecules) return { x, y, label: undefined, atom: { element, charge: 0, aromatic: false } };
  return { x, y, label, features: like?.features ?? palette.features ?? null };
}

export function newEdge(u, v, palette, { order = 1, label = null }) {
  if (palette.molecules) return { u, v, order };
  return { u, v, label, weight: palette.weighted ? 1 : null };
}

// A change in words; `names` has functions `vertex(v)`, `label(x)` and `edge(x)`.
export function inWords(edit, sketch, names) {
  const ends = ({ u, v }) => `${names.vertex(u)} and ${names.vertex(v)}`;
  const bond = names.bond ?? "edge";
  switch (edit.kind) {
    case "delete vertex": return `Delete ${names.vertex(edit.v)}`;
    case "delete edge": return `Delete the ${bond} between ${ends(sketch.edges[edit.e])}`;
    case "relabel": return `Make ${names.vertex(edit.v)} ${withArticle(names.label(edit.element ?? edit.label))}`;
    case "change edge": return `Make the ${bond} between ${ends(sketch.edges[edit.e])} ${edit.order ? BOND_NAMES.get(edit.order) : names.edge(edit.label)}`;
    case "add edge": return `Connect ${ends(edit)}`;
    default: return `Add ${withArticle(edit.element)} at ${names.vertex(edit.v)}`;
  }
}

const withArticle = (word) => `${/^[AEFHILMNORSX](?![a-z])|^[aeiou]/.test(word) ? "an" : "a"} ${word}`;

// The vertices and edges that a change affects, to mark them.
export function touched(edit, sketch) {
  if (edit.e !== undefined) return [sketch.edges[edit.e].u, sketch.edges[edit.e].v];
  return edit.u !== undefined ? [edit.u, edit.v] : [edit.v];
}
