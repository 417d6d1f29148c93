// Training in the page: reservoirs drawn as in Python, all graphs embedded, the readout solved in closed form.

import { spectralBound, structureOf } from "./graphs.js";
import { Block, Estimator, Expansion, LinearReadout, Model } from "./model.js";
import { addRow, cholesky, dotRow, gram, largestEigenvalue, MATRIX, principalMap, products, solveLower, solveUpper, Stream } from "./numerics.js";
import { Layer, Reservoir } from "./reservoir.js";

const SETTLED = 1e-11; // states that move by less in a sweep have converged
const TOL = 1e-9, MOST_STEPS = 50; // of the paper's loop, for graphs without a certificate; as in the code that the page shows

// ---------------------------------------------------------------------- drawing

// The wiring of one layer before it is scaled, as `fdgnn.reservoir.drawing` draws it for one connection each.
function drawLayer(seed, i, H, n_sources) {
  const stream = (matrix) => new Stream([seed], [0, i, matrix]);
  const connect = (rng, columns) => ({ sources: rng.integers(columns, H), values: rng.uniform(H) });
  return {
    inputs: connect(stream(MATRIX.input), n_sources),
    recurrent: connect(stream(MATRIX.recurrent), H),
    bias: stream(MATRIX.bias).uniform(H),
  };
}

// rho(W_H) for one connection per unit: the largest geometric mean of |w| along a cycle.
function radiusOf({ parts, recurrent }) {
  let largest = 0;
  for (const { neurons, cycles } of parts) {
    if (!cycles) continue;
    const logs = neurons.reduce((sum, h) => sum + Math.log(Math.abs(recurrent.values[h])), 0);
    largest = Math.max(largest, Math.exp(logs / neurons.length));
  }
  return largest;
}

const scaled = ({ sources, values }, factor) => ({ sources, values: values.map((w) => w * factor) });

// W_phi of unit norm, 2 H x H.
function drawExpansion(seed, H) {
  const W = new Stream([seed], [0, 0, MATRIX.projection]).uniform(2 * H * H);
  const norm = Math.sqrt(largestEigenvalue(gram(W, 2 * H, H), H));
  return new Expansion(W.map((w) => w / norm), H);
}

// ---------------------------------------------------------------------- the readout

// The column means of A (n, width), and A minus these means.
function withoutMeans(A, n, width) {
  const mean = new Float64Array(width), rest = Float64Array.from(A);
  for (let i = 0; i < n; i++) addRow(mean, 0, 1 / n, A, i * width, width);
  for (let i = 0; i < n; i++) addRow(rest, i * width, -1, mean, 0, width);
  return [mean, rest];
}

// Ridge regression of targets Y (n, q) on features X (n, P): weights and intercepts, or null without a solution.
function fitRidge(X, n, P, Y, q, alpha) {
  const [mean, Z] = withoutMeans(X, n, P), [level, T] = withoutMeans(Y, n, q), W = new Float64Array(P * q);
  const moment = (S) => {
    for (let i = 0; i < n; i++) for (let p = 0; p < P; p++) addRow(W, p * q, Z[i * P + p], S, i * q, q);
  };
  const shifted = n > P ? gram(Z, n, P) : products(Z, n, P), size = Math.min(n, P);
  for (let i = 0; i < size; i++) shifted[i * size + i] += alpha;
  if (!cholesky(shifted, size)) return null;
  const right = n > P ? W : T;
  if (n > P) moment(T);
  solveLower(shifted, size, right, q);
  solveUpper(shifted, size, right, q);
  if (n <= P) moment(right);
  const weights = Array.from({ length: q }, (_, c) => Float64Array.from({ length: P }, (_, p) => W[p * q + c]));
  return { weights, intercept: weights.map((w, c) => level[c] - dotRow(w, 0, mean, 0, P)) };
}

// Out-of-fold predictions (n, q): of each sample by the regression on the other folds.
function outOfFold(X, n, P, Y, q, alpha, fold) {
  const outputs = new Float64Array(n * q), all = [...fold.keys()];
  for (const left of new Set(fold)) {
    const rest = all.filter((i) => fold[i] !== left), m = rest.length;
    const [some, wanted] = [[X, P], [Y, q]].map(([A, width]) => {
      const rows = new Float64Array(m * width);
      rest.forEach((i, k) => rows.set(A.subarray(i * width, (i + 1) * width), k * width));
      return rows;
    });
    const fitted = fitRidge(some, m, P, wanted, q, alpha);
    if (!fitted) return null;
    for (const i of all) {
      if (fold[i] !== left) continue;
      fitted.weights.forEach((w, c) => { outputs[i * q + c] = dotRow(X, i * P, w, 0, P) + fitted.intercept[c]; });
    }
  }
  return outputs;
}

// ---------------------------------------------------------------------- the trainer

export class Trainer {
  constructor(graphs, { graphs: { classes }, training: { degree, folds } }, kind) {
    this.graphs = graphs;
    this.classes = classes;
    this.degree = degree;
    this.kind = kind;
    this.folds = folds;
    this.structures = graphs.map(structureOf);
    this.bounds = this.structures.map(spectralBound);
    this.q = classes.length === 2 ? 1 : classes.length;
    this.Y = Float64Array.from(graphs.flatMap(({ answer }) =>
      this.q === 1 ? [answer === 1 ? 1 : -1] : classes.map((_, c) => (c === answer ? 1 : -1))));
    this.expansions = new Map();
    this.axes = null;
  }

  // The layers of a reservoir with these settings, scaled.
  layersOf({ seed, units, rho, omega1, omega }, depth) {
    return Array.from({ length: depth }, (_, i) => {
      const n_sources = i ? units : this.kind.n_inputs;
      const drawn = drawLayer(seed, i, units, n_sources);
      const scaling = i ? omega : omega1;
      const bare = new Layer(scaled(drawn.inputs, scaling), drawn.recurrent, drawn.bias.map((b) => b * scaling));
      const factor = rho / (radiusOf(bare) * (this.degree || 1));
      return new Layer(bare.inputs, scaled(drawn.recurrent, factor), bare.bias);
    });
  }

  // Pooled states of the last layer, row after row, of every `of`-th graph from graph `k` on: the share of one of several
  // workers.
  embed(settings, { k, of }) {
    const { seed, units, rho, omega1, omega, depth } = settings;
    const embedded = [k, of, seed, units, rho, omega1, omega, depth].join(" ");
    if (embedded !== this.embedded) {
      const reservoir = reservoirWith(this.layersOf(settings, depth), this.kind, SETTLED), own = [...this.graphs.keys()].filter((g) => g % of === k);
      const rows = new Float64Array(own.length * units);
      own.forEach((g, i) => rows.set(reservoir.encode(this.graphs[g], this.structures[g], this.bounds[g]).features, i * units));
      Object.assign(this, { embedded, rows });
    }
    return this.rows;
  }

  // Features (n_graphs, P) from pooled states: the shares of all workers.
  features({ seed, units: H }, shares) {
    const drawn = `${seed} ${H}`;
    if (!this.expansions.has(drawn)) this.expansions.set(drawn, drawExpansion(seed, H));
    const expansion = this.expansions.get(drawn), { P } = expansion, of = shares.length;
    const X = new Float64Array(this.graphs.length * P);
    this.graphs.forEach((_, g) => {
      const i = Math.floor(g / of);
      X.set(expansion.expand(shares[g % of].subarray(i * H, (i + 1) * H)), g * P);
    });
    return { X, P, expansion };
  }

  // Results derived from pooled states: out-of-fold outputs and accuracy, the map, the certificates.
  train(settings, shares) {
    const start = performance.now(), n = this.graphs.length;
    const { X, P } = this.features(settings, shares);
    const radius = Math.max(...this.layersOf(settings, settings.depth).map(radiusOf));
    const outputs = outOfFold(X, n, P, this.Y, this.q, settings.alpha, this.folds);
    const solved = performance.now();
    const map = principalMap(withoutMeans(X, n, P)[1], n, P, this.axes?.[0].length === P ? this.axes : null);
    this.axes = map.axes;
    const answers = outputs && this.graphs.map((_, g) => winner(outputs.subarray(g * this.q, (g + 1) * this.q)));
    const right = answers && answers.map((answer, g) => answer === this.graphs[g].answer);
    return {
      outputs: outputs && [...outputs], answers, right,
      accuracy: right && right.filter(Boolean).length / n,
      places: map.places, shares: map.shares,
      contractions: this.bounds.map((bound) => bound * radius),
      times: { readout: solved - start, all: performance.now() - start },
    };
  }

  // The weights of the model with these settings, trained on all graphs.
  weights(settings, shares) {
    const { X, P, expansion } = this.features(settings, shares);
    const readout = fitRidge(X, this.graphs.length, P, this.Y, this.q, settings.alpha);
    const layers = this.layersOf(settings, settings.depth).map(({ inputs, recurrent, bias }) => ({ inputs, recurrent, bias }));
    return readout && { layers, projection: expansion.weights, units: settings.units, ...readout };
  }
}

const winner = (outputs) => (outputs.length === 1 ? Number(outputs[0] > 0) : outputs.indexOf(Math.max(...outputs)));

// A reservoir that gives the features of the paper's model, as the Python code that the page shows.
function reservoirWith(layers, kind, settled) {
  return new Reservoir({
    layers, radii: layers.map(radiusOf), n_inputs: kind.n_inputs, settled,
    vocabulary: kind.vertices === "labels" ? kind.labels : null,
    parameters: { pooled_layers: "last", solver: "auto", tol: TOL, max_iter: MOST_STEPS, handle_unknown: "ignore" },
  });
}

// A model with the weights of a trainer.
export function trainedModel({ layers, projection, units, weights, intercept }, { kind, classes }) {
  const encoder = reservoirWith(layers.map(({ inputs, recurrent, bias }) => new Layer(inputs, recurrent, bias)), kind);
  const block = new Block(encoder, new Expansion(projection, units), 1);
  return new Model({ estimators: [new Estimator("reservoir", [block], new LinearReadout(weights, intercept))], classes, kind });
}
