// State shared by all parts of the page: the model, the graph on the canvas and listeners to its changes; and parsers of
// typed graphs: SMILES, and lists of edges.

import { byId, element, written } from "./elements.js";
import { graphsOf } from "./graphs.js";
import { apart, place } from "./layout.js";
import { atomsOf, BOND_NAMES, BOND_ORDERS, graphOf, History, ringEdges, Sketch, withAromaticRings, withGivenAtoms } from "./sketch.js";

const COMMON = ["C", "N", "O", "F", "S", "Cl", "Br", "P", "I"];

export class Stage {
  constructor(content, model) {
    this.content = content;
    this.own = this.model = model;
    this.kind = model.kind;
    this.rules = content.molecules ? content.model.record.schema : null; // by which graphs are read from SMILES
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

  // ------------------------------------------------------------------ the canvas

  get sketch() {
    return this.history.now;
  }

  // The number of the example that is on the canvas, changed or not; null for a graph that was typed.
  get example() {
    return this.history.entry.example;
  }

  // Change the graph, and tell listeners whether only positions changed, because predictions then stay the same.
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
    const graph = this.graph(), refused = this.model.unseen(graph, true);
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

  // The name of the explained score: that of the predicted class, or the number.
  get scoreWord() {
    return this.model.classes ? `the score of class ${this.className(this.explanation.target)}` : "the number";
  }

  // The mean attribution of the vertices on the canvas.
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

  // The target of an example in words; empty if it is unknown.
  truthOf(g) {
    const answer = this.examples[g]?.answer ?? null, classes = this.content.graphs?.classes;
    if (answer === null) return "";
    return classes ? `class ${this.nameOfClass(classes[answer])}` : written(answer);
  }

  // Properties of an atom beside its element; empty if graphs are not molecules.
  atomFacts(v) {
    if (!this.rules) return [];
    const { hydrogens, aromatic, ring, over } = this.atoms[v];
    return [aromatic ? "aromatic" : "", ring && !aromatic ? "in a ring" : "", `${hydrogens || "no"} H`, over ? "too many bonds" : ""].filter(Boolean);
  }

  // ------------------------------------------------------------------ sources of graphs

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

// ---------------------------------------------------------------------- parsing SMILES

class ReadingError extends Error {}

const ORGANIC = /^(Cl|Br|B|C|N|O|P|S|F|I|b|c|n|o|p|s)/;
const BRACKET = /^\[(\d+)?([A-Z][a-z]?|[bcnops]|se|as)(@{0,2}(?:TH\d|AL\d|SP\d)?)(H\d*)?([+-]+\d*)?(?::\d+)?\]/;
const BONDS = new Map([["-", 1], ["=", 2], ["#", 3], [":", 1.5], ["/", 1], ["\\", 1]]);

// Atoms {element, charge, aromatic, hydrogens} and bonds {u, v, order} of a SMILES. Stereo marks are ignored.
function readSmiles(text) {
  const atoms = [], bonds = [], branches = [], rings = new Map();
  let rest = text.trim(), last = null, order = null;
  const where = () => `after “${text.trim().slice(0, text.trim().length - rest.length)}”`;
  const fail = (why) => { throw new ReadingError(`This SMILES cannot be read: ${why}.`); };
  const bind = (u, v, given) => bonds.push({ u, v, order: given ?? (atoms[u].aromatic && atoms[v].aromatic ? null : 1) });
  const put = (atom) => {
    atoms.push(atom);
    if (last !== null) bind(last, atoms.length - 1, order);
    last = atoms.length - 1;
    order = null;
  };
  while (rest) {
    let found;
    if ((found = ORGANIC.exec(rest))) {
      const symbol = found[0], aromatic = symbol === symbol.toLowerCase();
      put({ element: aromatic ? symbol.toUpperCase() : symbol, charge: 0, aromatic, hydrogens: null });
    } else if ((found = BRACKET.exec(rest))) {
      put(bracketAtom(found));
    } else if ((found = /^(%\d\d|\d)/.exec(rest))) {
      if (last === null) fail(`a ring begins before the first atom`);
      const name = found[0].replace("%", "");
      if (rings.has(name)) {
        const [u, first] = rings.get(name);
        if (u === last) fail(`a ring closes on its own atom ${where()}`);
        bind(u, last, first ?? order);
        rings.delete(name);
      } else rings.set(name, [last, order]);
      order = null;
    } else if ((found = /^[-=#:/\\]/.exec(rest))) order = BONDS.get(found[0]);
    else if ((found = /^\(/.exec(rest))) branches.push(last);
    else if ((found = /^\)/.exec(rest))) {
      if (!branches.length) fail(`a bracket closes that was not opened ${where()}`);
      last = branches.pop();
    } else if ((found = /^\./.exec(rest))) last = null;
    else fail(`“${rest.slice(0, 8)}” ${where()} is not known to this page`);
    rest = rest.slice(found[0].length);
  }
  if (rings.size) fail(`ring ${[...rings.keys()][0]} is not closed`);
  if (branches.length) fail("a bracket is not closed");
  if (!atoms.length) fail("it has no atoms");
  settleAromatic(atoms, bonds);
  return { atoms, bonds };
}

function bracketAtom([, , symbol, , hydrogens, charge]) {
  const aromatic = symbol === symbol.toLowerCase();
  const element = symbol[0].toUpperCase() + symbol.slice(1);
  if (element === "H") throw new ReadingError("Hydrogens as atoms of their own are not read: leave them out.");
  const many = hydrogens ? Number(hydrogens.slice(1) || 1) : 0;
  let sum = 0;
  if (charge) {
    const digits = charge.replace(/[+-]/g, "");
    sum = (charge[0] === "+" ? 1 : -1) * (digits ? Number(digits) : charge.length);
  }
  return { element, charge: sum, aromatic, hydrogens: many };
}

// A bond between two aromatic atoms is aromatic if it lies on a ring, else single.
function settleAromatic(atoms, bonds) {
  const inRing = ringEdges(atoms.length, bonds);
  bonds.forEach((bond, e) => {
    bond.implied = bond.order === null;
    bond.order ??= inRing[e] ? 1.5 : 1;
  });
}

// ---------------------------------------------------------------------- lists of edges

const LINK = /^(.+?)(->|--|-|,|\s)\s*(.+)$/;
const NAME = /^[\p{L}\p{N}_.]+$/u;

// The message for a text that is not a list of edges.
function noEdges(text) {
  const short = text.trim().length > 40 ? `${text.trim().slice(0, 40)} …` : text.trim();
  return new ReadingError(`“${short}” is no list of edges: this page takes pairs of vertices, such as 0-1 1-2 2-0, and no SMILES.`);
}

// Vertices by name, and edges: `0-1 1-2`, one pair per line or between spaces; `a b` per line as well.
// A name may carry a label: `1:C-2:O`. A single name is a vertex without edges.
function readEdges(text) {
  const names = new Map(), labels = [], edges = [];
  const vertex = (word) => {
    const [, name, label] = /^([^:]+)(?::(.+))?$/.exec(word.trim()) ?? [null, word.trim(), undefined];
    if (!NAME.test(name)) throw noEdges(text);
    if (!names.has(name)) {
      names.set(name, names.size);
      labels.push(null);
    }
    const v = names.get(name);
    if (label !== undefined) labels[v] = label;
    return v;
  };
  const between = /[^\s,-]-/.test(text) ? /[\n;,]+/ : /[\n;]+/; // with 0-1, 1-2 commas stand between edges
  for (const line of text.split(between).map((each) => each.trim()).filter(Boolean)) {
    const words = line.split(/\s+/);
    const pairs = words.some((word) => /[^-]-[^-]|->|--|,/.test(word)) || words.length !== 2 ? words : [line];
    for (const pair of pairs) {
      const found = LINK.exec(pair);
      if (!found) vertex(pair);
      else edges.push([vertex(found[1]), vertex(found[3])]);
    }
  }
  if (!names.size) throw new ReadingError("There is no edge: write pairs of vertices, such as 0-1 1-2 2-0.");
  if (names.size > 2000) throw new ReadingError("That is more than 2000 vertices, which is too much for this page.");
  return { names: [...names.keys()], labels, edges };
}

// ---------------------------------------------------------------------- pasting

const SMILES_HELP = "A SMILES: atoms B C N O P S F Cl Br I and [brackets], bonds, branches, rings, charges. Stereo marks are passed over. Enter draws it.";
const EDGES_HELP = "A list of edges: 0-1 1-2 2-0, or two names per line. Ctrl+Enter draws it.";
const LABELS_HELP = " A vertex may say its label after a colon, once: ";

export function pasting(stage, start) {
  const text = byId("text"), problem = byId("paste-problem");
  const labels = stage.kind.vertices === "labels" && !stage.rules;
  const example = labels ? exampleWith(stage) : "";
  byId("paste-summary").textContent = stage.rules ? "Type a SMILES" : "Type a graph";
  byId("paste-what").textContent = stage.rules ? SMILES_HELP : EDGES_HELP + (labels ? LABELS_HELP + example : "");
  text.placeholder = stage.rules ? "CC(=O)Oc1ccccc1C(=O)O" : example || "0-1 1-2 2-0";
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || !(stage.rules || event.ctrlKey)) return;
    event.preventDefault();
    byId("paste").requestSubmit();
  });
  byId("paste").addEventListener("submit", (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      const { sketch, note } = read(stage, text.value);
      start(sketch);
      problem.textContent = note ?? "";
    } catch (error) {
      if (!(error instanceof ReadingError)) throw error;
      problem.textContent = error.message;
    }
  });
}

function exampleWith(stage) {
  const [a, b = a] = (stage.palette.labels ?? []).slice(0, 2).map((label) => stage.labelName(label));
  return a === undefined ? "" : `0:${a}-1:${b} 1-2:${a} 2-0`;
}

// Parse typed text as a sketch; throw ReadingError with the reason if that is impossible.
export function read(stage, text) {
  if (!stage.rules) return plain(stage, text);
  if (/\s/.test(text.trim())) throw new ReadingError("That is no SMILES: it must be one word, such as CCO.");
  const written = readSmiles(text), { atoms, bonds } = withAromaticRings(written.atoms, written.bonds);
  const places = place(atoms.length, bonds.map((b) => [b.u, b.v]));
  const vertices = atoms.map((atom, v) => ({ x: places[v][0], y: places[v][1], atom }));
  const bare = new Sketch(vertices, bonds, false);
  checkBonds(bare, written.atoms);
  const notes = [];
  if (stage.rules.standardize) notes.push("The model's molecules were standardized before it saw them; this one is taken as it is.");
  if (stage.rules.stereo && /[@/\\]/.test(text)) notes.push("The model knows stereo, which this page cannot work out: it is left out.");
  return { sketch: withGivenAtoms(bare), note: notes.join(" ") };
}

// Reject atoms outside of brackets with more bonds than their valence, as Python does.
function checkBonds(sketch, written) {
  const v = atomsOf(sketch).findIndex(({ over }, i) => over && written[i].hydrogens === null);
  if (v < 0) return;
  const { element, bonds } = atomsOf(sketch)[v];
  throw new ReadingError(`This SMILES is no molecule: its atom ${v}, ${element}, has bonds for ${bonds}, more than it can have. Charges stand in brackets, as in C[N+](=O)[O-].`);
}

function plain(stage, text) {
  const { names, labels, edges } = readEdges(text), { palette, kind } = stage;
  const places = place(names.length, edges);
  const byName = new Map((palette.labels ?? []).map((label) => [stage.labelName(label), label]));
  const known = new Map((palette.labels ?? []).map((label) => [String(label), label]));
  const named = (name) => byName.get(name.replace(/[\d_]+$/, "")); // C1 and C2 are named after the label C
  const alone = (name, v) => /^\d+$/.test(name) || labels[v] !== null || named(name) !== undefined;
  if (!edges.length && !names.every(alone)) throw noEdges(text);
  let n_bare = 0;
  const labelOf = (word, name) => {
    if (kind.vertices !== "labels") return null;
    if (word === null && named(name) === undefined) n_bare += 1;
    if (word === null) return named(name) ?? palette.labels[0];
    const found = byName.get(word) ?? known.get(word);
    if (found === undefined) throw new ReadingError(`The model knows no vertex label “${word}”; it knows ${[...byName.keys()].slice(0, 12).join(", ")}.`);
    return found;
  };
  const edgeLabel = palette.edgeLabels?.[Math.max(0, palette.edgeLabels.findIndex((l) => stage.edgeLabelName(l) === "single"))] ?? null;
  let sketch = new Sketch(names.map((name, v) => ({
    x: places[v][0], y: places[v][1], label: labelOf(labels[v], name), features: palette.features,
  })), [], kind.directed);
  for (const [u, v] of edges) sketch = sketch.withEdge({ u, v, label: edgeLabel, weight: palette.weighted ? 1 : null });
  const taken = n_bare ? stage.labelName(palette.labels[0]) : "";
  return { sketch, note: n_bare ? `${n_bare === 1 ? "One vertex says" : `${n_bare} vertices say`} no label after a colon, and ${n_bare === 1 ? "is" : "are"} taken as “${taken}”.` : "" };
}

// The notes below the canvas.
export function noted(stage) {
  const notes = [...stage.content.notes];
  if (stage.rules) {
    notes.push("After a change the page works out neighbors, hydrogens and rings of each atom as the model reads them. It does not look for aromatic rings again: a bond is aromatic until you change it"
      + (stage.rules.atoms === "rich" ? ", and hybridization is estimated from the bonds." : "."));
  }
  if (stage.kind.vertices === "features" && !stage.rules) notes.push("Vertices carry numbers, which the page keeps as they are. A new vertex has those of the vertex it is added to.");
  stage.listeners.push(({ moved }) => {
    if (moved) return;
    byId("notes").replaceChildren(...[...unseenNotes(stage), ...notes].map((text) => element("p", { class: "note" }, text)));
  });
}

// Notes on labels that no training graph has, but that the model accepts.
function unseenNotes(stage) {
  const { unseen = [], unseenEdges = [], graph } = stage.explanation;
  if (unseen.length && graph.labels.every((label) => unseen.includes(label))) {
    return ["No vertex label of this graph occurs in training: the prediction means nothing."];
  }
  const note = (what, labels) => (labels.length
    ? [`Labels that do not occur in training, ${what}: ${labels.slice(0, 8).map((label) => `“${label}”`).join(", ")}${labels.length > 8 ? ", …" : ""}. The prediction rests on the rest of the graph.`]
    : []);
  return [
    ...note(stage.molecule ? "atoms" : "vertices", unseen.map((label) => stage.labelName(label))),
    ...note(stage.molecule ? "bonds" : "edges", unseenEdges.map((label) => stage.edgeLabelName(label))),
  ];
}
