// A fitted model, made from what its model file would hold: estimators whose outputs are averaged.

import { structureOf } from "./graphs.js";
import { MATRIX, Stream } from "./random.js";
import { Expansion, KernelReadout, LinearReadout, probabilities } from "./readouts.js";
import { Layer, Reservoir } from "./reservoir.js";
import { WLCounts } from "./wl.js";

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

function wlCountsOf({ parameters, facts }, arrays, kind) {
  const nothing = kind.vertices === "nothing", auto = parameters.vertices === "auto";
  const edges = arrays.get("feature_edges"), counts = arrays.get("feature_counts");
  const columns = arrays.get("columns");
  return new WLCounts({
    first: auto ? (nothing ? "log degree" : kind.vertices) : parameters.vertices,
    histograms: parameters.histograms === "auto" ? auto && nothing : parameters.histograms,
    n_iterations: parameters.n_iterations,
    counts: parameters.counts,
    mask: parameters.n_features === null ? null : parameters.n_features - 1,
    n_features: parameters.n_features ?? columns.data.length,
    columns: columns && new Map(Array.from(columns.data, (key, i) => [`${key >> 32n},${key & 0xffffffffn}`, i])),
    labeledArcs: facts.labeled_arcs,
    weightedArcs: facts.weighted_arcs,
    weightEdges: facts.whole_weights ? null : arrays.get("weight_edges").data,
    joint: facts.joint,
    featureEdges: edges && Array.from(counts.data, (count, j) =>
      edges.data.subarray(j * edges.shape[1], j * edges.shape[1] + count)),
    vocabulary: facts.vocabulary && new Set(facts.vocabulary),
    arcVocabulary: facts.arc_vocabulary && new Set(facts.arc_vocabulary),
    takesUnseen: parameters.handle_unknown === "ignore",
  });
}

// W_phi is drawn again where the seed says how, which takes less room than its numbers.
export function drawProjection({ entropy, key, rows, columns, norm }) {
  const drawn = new Stream(entropy, [...key, 0, MATRIX.projection]).uniform(rows * columns);
  return new Expansion(drawn.map((w) => w / norm), columns);
}

// One encoder with the expansion of its features and their scale.
class Block {
  constructor(encoder, expansion, scale) {
    this.encoder = encoder;
    this.expansion = expansion;
    this.scale = scale;
    this.n_features = expansion ? expansion.P : encoder.n_features;
  }

  // Features as the readout sees them, and how what they add is shared by the vertices.
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
  return record.kind === "reservoir" ? reservoirOf(record, arrays, kind, radii) : wlCountsOf(record, arrays, kind);
}

// ---------------------------------------------------------------------- readouts

function readoutOf(name, arrays) {
  const intercept = arrays.get("intercept").data;
  if (name === "rbf") return kernelReadoutOf(arrays, intercept);
  const values = arrays.get("coef") ?? arrays.get("coef.values"), width = values.shape[1];
  const weights = Array.from(intercept, (_, q) => values.data.subarray(q * width, (q + 1) * width));
  return new LinearReadout(weights, intercept, arrays.get("coef.columns")?.data);
}

function kernelReadoutOf(arrays, intercept) {
  const short = arrays.get("examples.columns"), places = arrays.get("examples.indices").data;
  const columns = short ? Int32Array.from(places, (i) => short.data[i]) : places;
  let values = arrays.get("examples.data").data;
  if (arrays.has("examples.codes")) {
    const few = values;
    values = Float64Array.from(arrays.get("examples.codes").data, (code) => few[code]);
  }
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

  static of(name, { encoder, expansion, scale }, readout) {
    return new Estimator(name, [new Block(encoder, expansion, scale)], readout);
  }

  // Features of all blocks side by side, and how a direction of them splits.
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

  // Labels that the model would refuse.
  refused(graph) {
    return [...new Set(this.estimators.flatMap((n) => n.blocks.flatMap((b) => b.encoder.refused(graph))))];
  }

  // Labels that the model has not seen.
  unseen(graph) {
    return [...new Set(this.estimators.flatMap((n) => n.blocks.flatMap((b) => b.encoder.unseen(graph))))];
  }

  unseenEdges(graph) {
    return [...new Set(this.estimators.flatMap((n) => n.blocks.flatMap((b) => b.encoder.unseenEdges?.(graph) ?? [])))];
  }

  // The real-valued outputs, averaged over estimators.
  outputs(graph, structure = structureOf(graph)) {
    const each = this.estimators.map((n) => n.readout.outputs(n.encode(graph, structure).features));
    return each[0].map((_, q) => each.reduce((sum, own) => sum + own[q], 0) / each.length);
  }

  // The number of the class with the largest output; with one output, its sign.
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

  // What the score of `target` loses without each vertex.
  vertexEffects(graph, target) {
    const score = (one) => {
      const outputs = this.outputs(one), signs = this.signs(target, outputs.length);
      return outputs.reduce((sum, s, q) => sum + s * signs[q], 0);
    };
    const whole = score(graph);
    return Float64Array.from({ length: graph.n }, (_, v) => whole - score(withoutVertex(graph, v)));
  }

  // Outputs, probabilities, and what each vertex adds to the score of `target`, by default the winner.
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

// A model of one target from the record and the arrays of its file, with what Python found out besides: `extras` has the
// radii of reservoirs and how projections are drawn.
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
