// The graph on the canvas: vertices and edges that can be changed, and taken back.

import { atomFeatures, atomLabel, BOND_NAMES, described } from "./chemistry.js";

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
