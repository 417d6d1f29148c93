// What all parts of the page share: the model, the graph that is on the canvas, and who wants to know of changes.

import { written } from "./elements.js";
import { graphsOf } from "./graphs.js";
import { apart, place } from "./layout.js";
import { BOND_NAMES, BOND_ORDERS } from "./molecules.js";
import { atomsOf, graphOf, History, Sketch, withGivenAtoms } from "./sketch.js";

const COMMON = ["C", "N", "O", "F", "S", "Cl", "Br", "P", "I"];

export class Stage {
  constructor(content, model) {
    this.content = content;
    this.own = this.model = model;
    this.kind = model.kind;
    this.rules = content.molecules;
    this.examples = content.graphs ? graphsOf(content) : [];
    this.names = new Map(Object.entries(content.names));
    this.edgeNames = new Map(Object.entries(content.edge_names));
    this.classNames = new Map(Object.entries(content.class_names));
    this.molecule = Boolean(this.rules) || [...this.names.values()].includes("C"); // drawn as one
    this.palette = this.paletteOf();
    this.listeners = [];
    this.history = new History();
  }

  paletteOf() {
    const { graphs, model } = this.content, facts = this.vocabulary();
    const seen = this.examples.flatMap(({ atoms }) => (atoms ?? []).map(({ element }) => element));
    const known = new Set(seen.length ? [...seen, "C", "N", "O"] : COMMON);
    return {
      molecules: Boolean(this.rules), elements: COMMON.filter((e) => known.has(e)),
      labels: this.kind.vertices === "labels" ? facts : null,
      edgeLabels: this.rules ? null : graphs?.edge_labels ?? null,
      weighted: graphs?.weighted ?? false,
      features: this.kind.vertices === "features" && !this.rules ? this.meanFeatures() : null,
      directed: model.record.graph_kind.directed,
    };
  }

  vocabulary() {
    const { record } = this.content.model;
    const each = record.estimators.flatMap(({ encoder }) => (
      encoder.kind === "union" ? encoder.facts.encoders.map(([, inner]) => inner) : [encoder]));
    return each.map((encoder) => encoder.facts.vocabulary).find(Boolean) ?? this.content.graphs?.labels ?? [];
  }

  meanFeatures() {
    const all = this.examples, width = this.kind.n_inputs, sums = new Float64Array(width);
    let n = 0;
    for (const graph of all) for (let v = 0; v < graph.n; v++, n++) for (let j = 0; j < width; j++) sums[j] += graph.features[v * width + j];
    return [...sums].map((sum) => sum / Math.max(n, 1));
  }

  // ------------------------------------------------------------------ what is on the canvas

  get sketch() {
    return this.history.now;
  }

  // The number of the example that is on the canvas, changed or not; null for a graph that was typed.
  get example() {
    return this.history.entry.example;
  }

  // Change the graph; what moves only is told as such, since the model need not look again.
  change(sketch, { record = true, moved = false } = {}) {
    if (record) this.history.add(sketch, moved);
    else this.history.replace(sketch);
    this.tell(moved);
  }

  tell(moved = false) {
    if (!moved) this.explanation = this.explained();
    for (const listener of this.listeners) listener({ moved });
  }

  graph() {
    return graphOf(this.sketch, this.kind, this.rules);
  }

  explained() {
    if (!this.sketch.vertices.length) return { empty: true };
    const graph = this.graph(), refused = this.model.refused(graph);
    if (refused.length) return { refused, graph };
    return { ...this.model.explain(graph), graph, unseen: this.model.unseen(graph), unseenEdges: this.model.unseenEdges(graph) };
  }

  use(model) {
    this.model = model;
    this.tell();
  }

  // ------------------------------------------------------------------ names

  nameOf(v) {
    const vertex = this.sketch.vertices[v];
    if (this.rules) {
      const { charge, element } = vertex.atom;
      return element + (charge ? (Math.abs(charge) > 1 ? Math.abs(charge) : "") + (charge > 0 ? "+" : "−") : "");
    }
    return this.labelName(vertex.label);
  }

  labelName(label) {
    return label === null || label === undefined ? "" : this.names.get(String(label)) ?? String(label);
  }

  // The letters of an atom in a drawing stand alone, with its hydrogens and charge beside them.
  drawnName(v) {
    return this.rules ? this.sketch.vertices[v].atom.element : this.nameOf(v);
  }

  besideOf(v) {
    if (!this.rules) return null;
    const { hydrogens, charge } = this.atoms[v], digits = (n) => (n > 1 ? String(n) : "");
    const lowered = digits(hydrogens).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
    const raised = digits(Math.abs(charge)).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
    return { hydrogens: hydrogens ? `H${lowered}` : "", charge: charge ? raised + (charge > 0 ? "⁺" : "⁻") : "" };
  }

  // The atoms on the canvas with what follows from their bonds.
  get atoms() {
    if (this.described?.sketch !== this.sketch) this.described = { sketch: this.sketch, atoms: atomsOf(this.sketch) };
    return this.described.atoms;
  }

  orderOf(e) {
    return this.sketch.edges[e].order ?? BOND_ORDERS.get(this.edgeName(e)) ?? 1;
  }

  // How the graph on the canvas is drawn, by any tab.
  get view() {
    return {
      molecule: this.molecule, nameOf: (v) => this.drawnName(v), besideOf: (v) => this.besideOf(v),
      edgeNameOf: (e) => this.edgeName(e), orderOf: (e) => this.orderOf(e), titleOf: (v) => this.vertexInWords(v),
    };
  }

  edgeName(e) {
    const edge = this.sketch.edges[e];
    return edge.order ? BOND_NAMES.get(edge.order) : this.edgeLabelName(edge.label);
  }

  edgeLabelName(label) {
    return label === null || label === undefined ? "" : this.edgeNames.get(String(label)) ?? String(label);
  }

  get vertexWord() {
    return this.molecule ? "atom" : "vertex";
  }

  // What vertices add to: the score of the class that is answered, or a number.
  get scoreWord() {
    return this.model.classes ? `the score of class ${this.className(this.explanation.target)}` : "the number";
  }

  // What a vertex of the graph on the canvas adds in the mean.
  get meanVertex() {
    const { vertices } = this.explanation;
    return vertices.reduce((sum, value) => sum + value, 0) / vertices.length;
  }

  vertexInWords(v) {
    const name = this.nameOf(v), which = `${this.vertexWord} ${v}`;
    return name ? `${name} (${which})` : which;
  }

  className(c) {
    return this.model.classes ? this.nameOfClass(this.model.classes[c]) : "";
  }

  nameOfClass(code) {
    const name = this.classNames.get(String(code));
    return name ? `${code} (${name})` : String(code);
  }

  // What the data says of an example, in words; nothing where it says nothing.
  truthOf(g) {
    const answer = this.examples[g]?.answer ?? null, classes = this.content.graphs?.classes;
    if (answer === null) return "";
    return classes ? `class ${this.nameOfClass(classes[answer])}` : written(answer);
  }

  // What is known of an atom beside its element; nothing where graphs are no molecules.
  atomFacts(v) {
    if (!this.rules) return [];
    const { hydrogens, aromatic, ring, over } = this.atoms[v];
    return [aromatic ? "aromatic" : "", ring && !aromatic ? "in a ring" : "", `${hydrogens || "no"} H`, over ? "too many bonds" : ""].filter(Boolean);
  }

  // ------------------------------------------------------------------ where graphs come from

  // The sketch of an example; molecules come with their atoms, bonds and places.
  sketchOf(g) {
    const graph = this.examples[g], { n, edges, labels, features, weights, edgeLabels, atoms, bonds } = graph;
    const at = atoms ? apart(graph.places, edges) : place(n, edges), width = this.kind.n_inputs;
    const vertices = at.map(([x, y], v) => ({
      x, y, label: labels?.[v] ?? null, features: features ? Array.from(features.subarray(v * width, (v + 1) * width)) : null,
      ...(atoms && { atom: atoms[v] }),
    }));
    if (!atoms) {
      const made = edges.map(([u, v], e) => ({ u, v, label: edgeLabels?.[e] ?? null, weight: weights?.[e] ?? null }));
      return new Sketch(vertices, made, graph.directed);
    }
    const named = ([u, v]) => `${Math.min(u, v)} ${Math.max(u, v)}`, names = new Map(edges.map((ends, e) => [named(ends), edgeLabels?.[e]]));
    return withGivenAtoms(new Sketch(vertices, bonds.map(([u, v, order]) => ({ u, v, order, label: names.get(named([u, v])) ?? null }))));
  }

  show(g) {
    this.history.begin(this.sketchOf(g), g);
    this.tell();
  }

  start(sketch) {
    this.history.begin(sketch);
    this.tell();
  }
}
