// A fitted model, built from its model file: estimators whose outputs are averaged. Features pass through a random
// expansion and a linear readout or RBF kernel ridge regression. A row of features is {columns, values}, sparse.
//
// The attribution of a feature is its value times the gradient of the score, averaged along the straight line from the
// empty graph to the graph. This mean gradient has a closed form for each of these parts.

import { structureOf } from "./graphs.js";
import { addRow, dotRow, MATRIX, Stream } from "./numerics.js";
import { Layer, Reservoir } from "./reservoir.js";
import { PairCounts, WLCounts } from "./wl.js";

// ---------------------------------------------------------------------- from features to outputs

// tanh(W_phi x): `weights` (P, n_features), row after row.
export class Expansion {
  constructor(weights, n_features) {
    this.weights = weights;
    this.width = n_features;
    this.P = weights.length / n_features;
  }

  // W_phi x for dense features x.
  project(x) {
    const found = new Float64Array(this.P);
    for (let p = 0; p < this.P; p++) found[p] = dotRow(this.weights, p * this.width, x, 0, this.width);
    return found;
  }

  expand(x) {
    return this.project(x).map(Math.tanh);
  }

  // Mean gradient of w . tanh(W_phi x) along the line from 0 to x: W_phi^T (w tanh(a) / a), a = W_phi x.
  meanGradient(x, w) {
    const a = this.project(x), found = new Float64Array(this.width);
    for (let p = 0; p < this.P; p++) {
      const factor = w[p] * (Math.abs(a[p]) > 1e-9 ? Math.tanh(a[p]) / a[p] : 1);
      addRow(found, 0, factor, this.weights, p * this.width, this.width);
    }
    return found;
  }
}

// y = W_Y x + b. `weights` are q arrays; with `columns`, those of these columns only.
export class LinearReadout {
  constructor(weights, intercept, columns = null) {
    this.weights = weights;
    this.intercept = intercept;
    this.place = columns && new Map(Array.from(columns, (c, i) => [c, i]));
  }

  at(output, column) {
    const i = this.place ? this.place.get(column) : column;
    return i === undefined ? 0 : this.weights[output][i];
  }

  outputs({ columns, values }) {
    return this.weights.map((_, q) => {
      let total = 0;
      columns.forEach((c, i) => { total += values[i] * this.at(q, c); });
      return total + this.intercept[q];
    });
  }

  baseOutputs() {
    return [...this.intercept];
  }

  // Mean gradient of sum_q signs[q] y_q at the columns of x.
  direction({ columns }, signs) {
    return Float64Array.from(columns, (c) => signs.reduce((sum, s, q) => sum + (s ? s * this.at(q, c) : 0), 0));
  }
}

// The error function: exp(-x^2) times a series of positive terms; beyond 6 it is 1 to all digits.
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x, sum = x;
  for (let k = 1; Math.abs(term) > 1e-17 * Math.abs(sum); k++) {
    term *= (2 * x * x) / (2 * k + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

// f(x) = sum_j a_j exp(-c |x - x_j|^2) + b. The examples x_j are kept by columns.
class KernelReadout {
  // `examples`: {indptr, columns, values} row after row; `dual` (n, q) row after row.
  constructor(examples, dual, intercept, sharpness) {
    this.n = examples.indptr.length - 1;
    this.q = intercept.length;
    this.dual = dual;
    this.intercept = intercept;
    this.sharpness = sharpness;
    this.squares = new Float64Array(this.n);
    this.byColumn = new Map(); // column -> [rows, values]
    for (let j = 0; j < this.n; j++)
      for (let i = examples.indptr[j]; i < examples.indptr[j + 1]; i++) {
        const value = examples.values[i], c = examples.columns[i];
        this.squares[j] += value * value;
        if (!this.byColumn.has(c)) this.byColumn.set(c, [[], []]);
        const [rows, values] = this.byColumn.get(c);
        rows.push(j);
        values.push(value);
      }
  }

  // A = |x|^2 and B_j = x . x_j; C_j = |x_j|^2 are `squares`.
  moments({ columns, values }) {
    const B = new Float64Array(this.n);
    let A = 0;
    columns.forEach((c, i) => {
      A += values[i] * values[i];
      const found = this.byColumn.get(c);
      if (found) found[0].forEach((j, k) => { B[j] += values[i] * found[1][k]; });
    });
    return [A, B];
  }

  sum(closeness) {
    return Array.from({ length: this.q }, (_, q) => {
      let total = 0;
      for (let j = 0; j < this.n; j++) total += closeness[j] * this.dual[j * this.q + q];
      return total + this.intercept[q];
    });
  }

  outputs(x) {
    const [A, B] = this.moments(x), C = this.squares;
    return this.sum(B.map((b, j) => Math.exp(-this.sharpness * Math.max(A - 2 * b + C[j], 0))));
  }

  baseOutputs() {
    return this.sum(this.squares.map((C) => Math.exp(-this.sharpness * C)));
  }

  // 2 c sum_j a_j (I_j x_j - J_j x) at the columns of x, where
  //   I_j = int exp(-c (A t^2 - 2 B_j t + C_j)) dt from 0 to 1, and J_j the same with t under the integral.
  direction(x, signs) {
    const [A, B] = this.moments(x), c = this.sharpness, safe = Math.max(A, Number.MIN_VALUE);
    const toward = new Float64Array(this.n), root = Math.sqrt(c * safe);
    let away = 0;
    for (let j = 0; j < this.n; j++) {
      const C = this.squares[j], middle = B[j] / safe;
      const peak = Math.exp(-c * Math.max(C - B[j] * middle, 0));
      const whole = ((peak * Math.sqrt(Math.PI)) / (2 * root)) * (erf(root * (1 - middle)) + erf(root * middle));
      const ends = Math.exp(-c * C) - Math.exp(-c * Math.max(A - 2 * B[j] + C, 0));
      const share = signs.reduce((sum, s, q) => sum + s * this.dual[j * this.q + q], 0);
      toward[j] = share * whole;
      away += share * (ends / (2 * c * safe) + middle * whole);
    }
    return Float64Array.from(x.columns, (column, i) => {
      const found = this.byColumn.get(column);
      let pull = 0;
      if (found) found[0].forEach((j, k) => { pull += toward[j] * found[1][k]; });
      return 2 * c * (pull - away * x.values[i]);
    });
  }
}

// ---------------------------------------------------------------------- probabilities

// softmax(a g(s)): g is s between the targets -1 and +1 and almost flat beyond (fdgnn/uncertainty.py).
export function probabilities(outputs, slope) {
  const evidence = outputs.map((s) => Math.min(1, Math.max(-1, s)) + 1e-6 * s);
  const each = evidence.length === 1 ? [-0.5 * evidence[0], 0.5 * evidence[0]] : evidence;
  const largest = Math.max(...each.map((g) => slope * g));
  const powers = each.map((g) => Math.exp(slope * g - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / total);
}

// ---------------------------------------------------------------------- encoders

function reservoirOf({ parameters, facts }, arrays, kind, radii) {
  const bias = arrays.get("bias"), [L, H] = bias.shape;
  const part = (name, i) => {
    const { data, shape } = arrays.get(name), size = shape[1] * shape[2];
    return data.subarray(i * size, (i + 1) * size);
  };
  const layers = Array.from({ length: L }, (_, i) => new Layer(
    i ? { sources: part("in_sources", i - 1), values: part("in_values", i - 1) }
      : { sources: arrays.get("first_sources").data, values: arrays.get("first_values").data },
    { sources: part("rec_sources", i), values: part("rec_values", i) },
    bias.data.subarray(i * H, (i + 1) * H),
  ));
  return new Reservoir({ layers, radii, vocabulary: facts.vocabulary, n_inputs: kind.n_inputs, parameters });
}

function countsOf({ kind: name, parameters, facts }, arrays, kind) {
  const nothing = kind.vertices === "nothing", auto = parameters.vertices === "auto";
  const edges = arrays.get("feature_edges"), counts = arrays.get("feature_counts");
  const columns = arrays.get("columns");
  const settings = {
    first: auto ? (nothing ? "log degree" : kind.vertices) : parameters.vertices,
    histograms: parameters.histograms === "auto" ? auto && nothing : parameters.histograms,
    n_iterations: parameters.n_iterations,
    counts: parameters.counts,
    mask: parameters.n_features === null ? null : parameters.n_features - 1,
    n_features: parameters.n_features ?? columns.data.length,
    columns: columns && new Map(Array.from(columns.data, (key, i) => [key, i])),
    labeledArcs: facts.labeled_arcs,
    weightedArcs: facts.weighted_arcs,
    weightEdges: arrays.get("weight_edges")?.data ?? null,
    joint: facts.joint,
    featureEdges: edges && Array.from(counts.data, (count, j) =>
      edges.data.subarray(j * edges.shape[1], j * edges.shape[1] + count)),
    vocabulary: facts.vocabulary && new Set(facts.vocabulary),
    arcVocabulary: facts.arc_vocabulary && new Set(facts.arc_vocabulary),
    takesUnseen: parameters.handle_unknown === "ignore",
    max_distance: parameters.max_distance,
  };
  return new (name === "pairs" ? PairCounts : WLCounts)(name, settings);
}

// W_phi is drawn again if it follows from the seed, which takes less space than its numbers.
function drawProjection({ entropy, key, rows, columns, norm }) {
  const drawn = new Stream(entropy, [...key, 0, MATRIX.projection]).uniform(rows * columns);
  return new Expansion(drawn.map((w) => w / norm), columns);
}

// One encoder with the expansion of its features and their scale.
export class Block {
  constructor(encoder, expansion, scale) {
    this.encoder = encoder;
    this.expansion = expansion;
    this.scale = scale;
    this.n_features = expansion ? expansion.P : encoder.n_features;
  }

  // Features of the readout, and how attributions are divided among the vertices.
  encode(graph, structure) {
    const own = this.encoder.encode(graph, structure), { expansion, scale } = this;
    const inner = own.features;
    const seen = expansion ? expansion.expand(inner) : (inner.values ?? inner);
    const columns = inner.columns && !expansion ? inner.columns : Int32Array.from(seen, (_, i) => i);
    const back = (direction) => {
      const scaled = direction.map((w) => w * scale);
      return expansion ? expansion.meanGradient(inner, scaled) : scaled;
    };
    return {
      own, back,
      features: { columns, values: seen.map((value) => value * scale) },
      contributions: (direction) => own.contributions(back(direction)),
    };
  }
}

const grouped = (arrays, prefix) => {
  const found = new Map();
  for (const [name, array] of arrays) if (name.startsWith(prefix)) found.set(name.slice(prefix.length), array);
  return found;
};

function expansionOf(arrays, drawn) {
  if (drawn) return drawProjection(drawn);
  const found = arrays.get("projection");
  return found ? new Expansion(found.data, found.shape[1]) : null;
}

function blocksOf(record, arrays, kind, extras, prefix) {
  const own = grouped(arrays, "encoder.");
  const drawn = extras.projections.get(`${prefix}projection`);
  if (record.kind === "union") {
    return record.facts.encoders.map(([, each], b) => {
      const inner = grouped(own, `${b}.`), name = `${prefix}encoder.${b}.`;
      const encoder = encoderOf(each, grouped(inner, "encoder."), kind, extras.radii.get(`${name}encoder.`));
      return new Block(encoder, expansionOf(inner, extras.projections.get(`${name}projection`)), inner.get("scale").data[0]);
    });
  }
  const encoder = encoderOf(record, own, kind, extras.radii.get(`${prefix}encoder.`));
  return [new Block(encoder, expansionOf(arrays, drawn), 1)];
}

function encoderOf(record, arrays, kind, radii) {
  return record.kind === "reservoir" ? reservoirOf(record, arrays, kind, radii) : countsOf(record, arrays, kind);
}

// ---------------------------------------------------------------------- readouts

// Entries of an array, or their distinct values by codes (fdgnn/model_files/state.py).
function decoded(arrays, name) {
  const whole = arrays.get(name);
  if (whole) return whole.data;
  const values = arrays.get(`${name}.values`).data;
  return values.constructor.from(arrays.get(`${name}.codes`).data, (code) => values[code]);
}

function readoutOf(name, arrays) {
  const intercept = arrays.get("intercept").data;
  if (name === "rbf") return kernelReadoutOf(arrays, intercept);
  const values = arrays.get("coef") ?? arrays.get("coef.values"), width = values.shape[1];
  const weights = Array.from(intercept, (_, q) => values.data.subarray(q * width, (q + 1) * width));
  return new LinearReadout(weights, intercept, arrays.get("coef.columns")?.data);
}

function kernelReadoutOf(arrays, intercept) {
  const columns = decoded(arrays, "examples.indices"), values = decoded(arrays, "examples.data");
  const examples = { indptr: arrays.get("examples.indptr").data, columns, values };
  return new KernelReadout(examples, arrays.get("dual").data, intercept, arrays.get("sharpness").data[0]);
}

// ---------------------------------------------------------------------- estimators and models

export class Estimator {
  constructor(name, blocks, readout) {
    this.name = name;
    this.blocks = blocks;
    this.readout = readout;
  }

  // Features of all blocks side by side, and how their attributions are divided.
  encode(graph, structure) {
    const parts = this.blocks.map((block) => block.encode(graph, structure));
    if (parts.length === 1) return { parts, features: parts[0].features, split: (direction) => [direction] };
    const columns = [], values = [];
    let start = 0;
    parts.forEach(({ features }, b) => {
      for (const c of features.columns) columns.push(start + c);
      values.push(...features.values);
      start += this.blocks[b].n_features;
    });
    const split = (direction) => {
      let from = 0;
      return parts.map(({ features }) => direction.subarray(from, (from += features.columns.length)));
    };
    return { parts, features: { columns: Int32Array.from(columns), values: Float64Array.from(values) }, split };
  }
}

export class Model {
  constructor({ estimators, classes, slope = null, threshold = 0, kind }) {
    this.estimators = estimators;
    this.classes = classes; // null for a regressor
    this.slope = slope; // of probabilities; null for none
    this.threshold = threshold;
    this.kind = kind;
  }

  get encoders() {
    return this.estimators.flatMap(({ blocks }) => blocks.map(({ encoder }) => encoder));
  }

  // Vertex labels that no training graph has, or only those that the model rejects.
  unseen(graph, refused = false) {
    const knowing = this.encoders.filter(({ vocabulary, takesUnseen }) => vocabulary && !(refused && takesUnseen));
    return [...new Set((graph.labels ?? []).filter((label) => knowing.some(({ vocabulary }) => !vocabulary.has(label))))];
  }

  unseenEdges(graph) {
    return [...new Set(this.encoders.flatMap((encoder) => encoder.unseenEdges?.(graph) ?? []))];
  }

  // The real-valued outputs, averaged over estimators.
  outputs(graph, structure = structureOf(graph)) {
    const each = this.estimators.map((n) => n.readout.outputs(n.encode(graph, structure).features));
    return each[0].map((_, q) => each.reduce((sum, own) => sum + own[q], 0) / each.length);
  }

  // The position of the predicted class: the largest output, or the sign of a single one.
  winner(outputs) {
    if (outputs.length === 1) return this.classes ? Number(outputs[0] > 0) : 0;
    return outputs.indexOf(Math.max(...outputs));
  }

  // The score of a class (or output) as a combination of the outputs.
  signs(target, n_outputs) {
    if (this.classes && n_outputs === 1) return [target === 1 ? 1 : -1];
    return Array.from({ length: n_outputs }, (_, q) => Number(q === target));
  }

  probabilities(outputs) {
    if (this.slope === null) return null;
    return probabilities(outputs.map((s) => s + this.threshold), this.slope);
  }

  // Leave-one-out effects: the score of `target` minus the score without each vertex.
  vertexEffects(graph, target) {
    const score = (one) => {
      const outputs = this.outputs(one), signs = this.signs(target, outputs.length);
      return outputs.reduce((sum, s, q) => sum + s * signs[q], 0);
    };
    const whole = score(graph);
    return Float64Array.from({ length: graph.n }, (_, v) => whole - score(withoutVertex(graph, v)));
  }

  // Outputs, probabilities, and attributions for the score of `target`, by default the predicted class.
  explain(graph, target = null) {
    const structure = structureOf(graph), vertices = new Float64Array(graph.n);
    const encoded = this.estimators.map((n) => n.encode(graph, structure));
    const each = this.estimators.map((n, i) => n.readout.outputs(encoded[i].features));
    const outputs = each[0].map((_, q) => each.reduce((sum, own) => sum + own[q], 0) / each.length);
    const meant = target ?? this.winner(outputs), signs = this.signs(meant, outputs.length);
    const dot = (values) => values.reduce((sum, s, q) => sum + s * signs[q], 0);
    let base = 0;
    this.estimators.forEach((estimator, i) => {
      base += dot(estimator.readout.baseOutputs()) / this.estimators.length;
      const direction = estimator.readout.direction(encoded[i].features, signs);
      encoded[i].split(direction).forEach((own, b) => {
        encoded[i].parts[b].contributions(own).forEach((share, v) => { vertices[v] += share / this.estimators.length; });
      });
    });
    return { outputs, target: meant, score: dot(outputs), base, vertices, probabilities: this.probabilities(outputs) };
  }
}

// The graph without one vertex and its edges; labels stay as they were.
export function withoutVertex(graph, gone) {
  const kept = graph.edges.flatMap(([u, v], e) => (u === gone || v === gone ? [] : [e]));
  const ofEdges = (values) => values && kept.map((e) => values[e]);
  const width = graph.features ? graph.features.length / graph.n : 0;
  return {
    ...graph, n: graph.n - 1,
    edges: kept.map((e) => graph.edges[e].map((u) => u - (u > gone))),
    labels: graph.labels && graph.labels.filter((_, v) => v !== gone),
    features: graph.features && graph.features.filter((_, i) => Math.floor(i / width) !== gone),
    edgeLabels: ofEdges(graph.edgeLabels), weights: ofEdges(graph.weights),
  };
}

// A model of one target from the record and the arrays of its file, and `extras` from Python: spectral radii of
// reservoirs, and how projections are drawn.
export function modelOf(record, arrays, { radii, projections }) {
  const extras = { radii: new Map(Object.entries(radii)), projections: new Map(Object.entries(projections)) };
  const estimators = record.estimators.map((described, i) => {
    const own = grouped(arrays, `${i}.`);
    const blocks = blocksOf(described.encoder, own, record.graph_kind, extras, `${i}.`);
    return new Estimator(described.name, blocks, readoutOf(described.readout, own));
  });
  const [target] = record.targets;
  return new Model({
    estimators,
    classes: target.classes && target.classes.values,
    slope: target.slope,
    threshold: target.threshold ?? 0,
    kind: record.graph_kind,
  });
}
