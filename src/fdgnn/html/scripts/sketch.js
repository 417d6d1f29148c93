// The graph on the canvas: vertices and edges that can be changed, and taken back.

import { freePlace } from "./layout.js";
import { atomFeatures, atomLabel, BOND_NAMES, described } from "./molecules.js";

// A vertex is {label, x, y, features, atom}, an edge {u, v, label, weight, order}; atom and order only where
// graphs are molecules. Every change gives a new sketch, so that earlier ones stay as they were.
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

// Sketches one after another, also of one graph after another. An entry has the `sketch`, the sketch that its graph
// began as (`first`), the number of the graph among the page's examples (`example`, or null), and whether anything
// but places was changed since (`edited`).
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

  // Another graph. Examples that were only looked at are not kept, so that going through them does not bury changes.
  begin(first, example = null) {
    if (this.entry && this.untouched && this.entry.example !== null && example !== null) this.place -= 1;
    this.push({ sketch: first, first, example, edited: false });
  }

  add(sketch, moved = false) {
    if (sketch !== this.now) this.push({ ...this.entry, sketch, edited: this.entry.edited || !moved });
  }

  // Show another sketch in the place of this one, without a word of it in the history.
  replace(sketch) {
    this.past[this.place] = { ...this.entry, sketch };
  }

  // The graph as it began; that, too, can be taken back.
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

// Remember, of each atom, the label and the hydrogens it came with: they hold until it is changed.
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

// ---------------------------------------------------------------------- what the model sees

// The graph as encoders take it. In a molecule labels follow from atoms and bonds, by the model's `rules`.
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
    graph.edgeLabels = rules.bonds === "types" ? edges.map((e) => e.label ?? BOND_NAMES.get(e.order)) : null;
    graph.weights = rules.bonds === "orders" ? edges.map((e) => e.order) : null;
  }
  if (kind.vertices === "features") graph.features = Float64Array.from(rows.flatMap((row) => [...row]));
  return graph;
}

// ---------------------------------------------------------------------- edits

// Single changes of a graph: which there are, what each does, and how it is called.


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

// Only what leaves a molecule: in one piece, no atom with too many bonds, and no aromatic ring broken.
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

// Whose vertices and edges a change touches, for marking.
export function touched(edit, sketch) {
  if (edit.e !== undefined) return [sketch.edges[edit.e].u, sketch.edges[edit.e].v];
  return edit.u !== undefined ? [edit.u, edit.v] : [edit.v];
}
