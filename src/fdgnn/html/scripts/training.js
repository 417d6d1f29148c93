// Training in the page: reservoirs drawn as in Python, all graphs embedded, the readout solved in closed form.

import { addRow, cholesky, gram, largestEigenvalue, principalMap, products, solveLower, solveUpper } from "./algebra.js";
import { quotientOf, spectralBound, structureOf, union } from "./graphs.js";
import { Estimator, Model } from "./model.js";
import { MATRIX, Stream } from "./random.js";
import { Expansion, LinearReadout } from "./readouts.js";
import { firstDrive, follow, Layer, Reservoir } from "./reservoir.js";

const SETTLED = 1e-11; // a state that moves by less in a sweep is taken for settled
const CHUNK = 256; // vertices that are solved together: their states stay in the processor's cache
const TOL = 1e-9, MOST_STEPS = 50; // of the paper's loop, for graphs without a certificate; as in the code that is given

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

// rho(W_H) for one connection per neuron: the largest geometric mean of |w| along a cycle.
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

// Remember the last few results of a function of one text.
function remembered(make, most = 24) {
  const known = new Map();
  return (key, ...rest) => {
    if (!known.has(key)) {
      if (known.size >= most) known.delete(known.keys().next().value);
      known.set(key, make(...rest));
    }
    return known.get(key);
  };
}

// ---------------------------------------------------------------------- the readout

// Features and targets less their means, which `mean` and `level` are.
function centered(X, n, P, Y, q) {
  const [mean, Z] = withoutMeans(X, n, P), [level, T] = withoutMeans(Y, n, q);
  return { mean, level, Z, T };
}

function withoutMeans(A, n, width) {
  const mean = new Float64Array(width), rest = Float64Array.from(A);
  for (let i = 0; i < n; i++) addRow(mean, 0, 1 / n, A, i * width, width);
  for (let i = 0; i < n; i++) addRow(rest, i * width, -1, mean, 0, width);
  return [mean, rest];
}

// Outputs (n, q) of each sample by the ridge regression that has not seen its fold. With e_F the errors of a
// fold that was left out: (I - H_FF) e_F = (Y - H Y)_F, where I - H may be known but for a factor.
export function heldOut({ Z, T }, n, P, Y, q, alpha, fold) {
  const M = n - Math.max(...counts(fold)) > P ? leftByFeatures(Z, n, P, alpha) : leftBySamples(Z, n, P, alpha);
  if (!M) return null;
  const outputs = new Float64Array(n * q);
  for (const members of membersOf(fold)) {
    const m = members.length, system = new Float64Array(m * m), errors = new Float64Array(m * q);
    members.forEach((i, a) => {
      members.forEach((j, b) => { system[a * m + b] = M[i * n + j]; });
      for (let j = 0; j < n; j++) addRow(errors, a * q, M[i * n + j], T, j * q, q);
    });
    if (!cholesky(system, m)) return null;
    solveLower(system, m, errors, q);
    solveUpper(system, m, errors, q);
    members.forEach((i, a) => { for (let c = 0; c < q; c++) outputs[i * q + c] = Y[i * q + c] - errors[a * q + c]; });
  }
  return outputs;
}

// I - H = I - 1/n - Z (Z^T Z + alpha)^-1 Z^T, by B = L^-1 Z^T.
function leftByFeatures(Z, n, P, alpha) {
  const L = gram(Z, n, P), B = new Float64Array(P * n);
  for (let p = 0; p < P; p++) L[p * P + p] += alpha;
  if (!cholesky(L, P)) return null;
  for (let i = 0; i < n; i++) for (let p = 0; p < P; p++) B[p * n + i] = Z[i * P + p];
  solveLower(L, P, B, n);
  const M = gram(B, P, n).map((x) => -x - 1 / n);
  for (let i = 0; i < n; i++) M[i * n + i] += 1;
  return M;
}

// I - H = alpha S with S = G - g g^T / (1^T g), G = (K + alpha)^-1; this gives S.
function leftBySamples(Z, n, P, alpha) {
  const L = products(Z, n, P), G = new Float64Array(n * n), g = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    L[i * n + i] += alpha;
    G[i * n + i] = 1;
  }
  if (!cholesky(L, n)) return null;
  solveLower(L, n, G, n);
  solveUpper(L, n, G, n);
  for (let i = 0; i < n; i++) addRow(g, 0, 1, G, i * n, n);
  const total = g.reduce((sum, x) => sum + x, 0);
  for (let i = 0; i < n; i++) addRow(G, i * n, -g[i] / total, g, 0, n);
  return G;
}

const counts = (fold) => {
  const found = [];
  for (const f of fold) found[f] = (found[f] ?? 0) + 1;
  return found;
};

function membersOf(fold) {
  const found = [];
  fold.forEach((f, i) => (found[f] ??= []).push(i));
  return found.filter(Boolean);
}

// The readout on all samples: weights q x P and the intercept.
export function fitRidge({ mean, level, Z, T }, n, P, q, alpha) {
  const W = new Float64Array(P * q);
  const moment = (S) => {
    for (let i = 0; i < n; i++) for (let p = 0; p < P; p++) addRow(W, p * q, Z[i * P + p], S, i * q, q);
  };
  const shifted = n > P ? gram(Z, n, P) : products(Z, n, P), size = Math.min(n, P);
  for (let i = 0; i < size; i++) shifted[i * size + i] += alpha;
  if (!cholesky(shifted, size)) return null;
  const right = n > P ? W : Float64Array.from(T);
  if (n > P) moment(T);
  solveLower(shifted, size, right, q);
  solveUpper(shifted, size, right, q);
  if (n <= P) moment(right);
  const weights = Array.from({ length: q }, (_, c) => Float64Array.from({ length: P }, (_, p) => W[p * q + c]));
  const intercept = weights.map((w, c) => level[c] - w.reduce((sum, x, p) => sum + x * mean[p], 0));
  return { weights, intercept };
}

// ---------------------------------------------------------------------- the trainer

export class Trainer {
  constructor(graphs, { graphs: { classes }, training: { degree } }, kind, fold) {
    this.graphs = graphs;
    this.classes = classes;
    this.degree = degree;
    this.kind = kind;
    this.fold = fold;
    this.structures = graphs.map(structureOf);
    this.bounds = this.structures.map(spectralBound);
    this.quotients = this.structures.map((structure, g) => quotientOf(structure, this.firstOf(g)));
    this.q = classes.length === 2 ? 1 : classes.length;
    this.Y = Float64Array.from(graphs.flatMap(({ answer }) =>
      this.q === 1 ? [answer === 1 ? 1 : -1] : classes.map((_, c) => (c === answer ? 1 : -1))));
    this.layerOf = remembered(drawLayer, 200);
    this.expansionOf = remembered(drawExpansion, 6);
    this.statesOf = remembered(() => ({ pooled: [] }), 4);
    this.chunksOf = remembered((some) => this.chunked(some), 4);
    this.axes = null;
    this.rooms = {};
  }

  n_inputs() {
    return this.kind.vertices === "nothing" ? 1 : this.kind.n_inputs;
  }

  // The layers of a reservoir with these settings, scaled; those drawn before are used again.
  layersOf({ seed, units, rho, omega1, omega }, depth) {
    return Array.from({ length: depth }, (_, i) => {
      const n_sources = i ? units : this.n_inputs();
      const drawn = this.layerOf(`${seed} ${i} ${units}`, seed, i, units, n_sources);
      const scaling = i ? omega : omega1;
      const bare = new Layer(scaled(drawn.inputs, scaling), drawn.recurrent, drawn.bias.map((b) => b * scaling));
      const factor = rho / (radiusOf(bare) * (this.degree || 1));
      return new Layer(bare.inputs, scaled(drawn.recurrent, factor), bare.bias);
    });
  }

  // Pooled states of the last layer, row after row, of every `of`-th graph from graph `k` on: the share of one of several
  // workers. Graphs are solved in chunks, certified ones apart, and those together that come to rest about as fast.
  embed(settings, { k, of }) {
    const { seed, units, rho, omega1, omega, depth } = settings, own = [...this.graphs.keys()].filter((g) => g % of === k);
    const known = this.statesOf([k, of, seed, units, rho, omega1, omega].join(" "));
    if (known.pooled.length < depth) {
      const layers = this.layersOf(settings, depth), radius = Math.max(...layers.map(radiusOf));
      const sums = layers.map(() => new Float64Array(this.graphs.length * units));
      for (const certified of [true, false]) {
        const some = own.filter((g) => radius * this.bounds[g] < 1 === certified).sort((a, b) => this.bounds[a] - this.bounds[b]);
        for (const chunk of this.chunksOf(some.join(" "), some)) this.solve(layers, chunk, certified, sums);
      }
      known.pooled = sums;
    }
    const rows = new Float64Array(own.length * units), sums = known.pooled[depth - 1];
    own.forEach((g, i) => rows.set(sums.subarray(g * units, (g + 1) * units), i * units));
    return rows;
  }

  // What the first layer reads at some vertices of a graph: numbers of labels, or features.
  inputsOf(g, vertices) {
    const { labels, features } = this.graphs[g], width = this.kind.n_inputs;
    if (this.kind.vertices === "labels") {
      this.codes ??= new Map(this.kind.labels.map((label, i) => [label, i]));
      return { codes: vertices.map((v) => this.codes.get(labels[v]) ?? -1) };
    }
    if (this.kind.vertices !== "features") return {};
    return { features: vertices.flatMap((v) => [...features.subarray(v * width, (v + 1) * width)]), n_inputs: width };
  }

  // What a vertex brings, as a text.
  firstOf(g) {
    return [...Array(this.graphs[g].n).keys()].map((v) => Object.values(this.inputsOf(g, [v])).join(" "));
  }

  // Graphs in groups of about CHUNK vertices: each is a union of quotients, with its inputs.
  chunked(some) {
    const groups = [];
    let n = Infinity;
    for (const g of some) {
      n += this.quotients[g].n;
      if (n > CHUNK) {
        groups.push([]);
        n = this.quotients[g].n;
      }
      groups.at(-1).push(g);
    }
    return groups.map((group) => {
      const quotients = group.map((g) => this.quotients[g]), each = group.map((g) => this.inputsOf(g, this.quotients[g].ones));
      const joined = (name) => each[0][name] && each.flatMap((inputs) => inputs[name]);
      const inputs = { codes: joined("codes"), features: joined("features"), n_inputs: this.kind.n_inputs };
      return { group, structure: union(quotients), sizes: Float64Array.from(quotients.flatMap(({ sizes }) => sizes)), inputs };
    });
  }

  // Arrays to work in, which are used again and again.
  roomFor(size, name, count) {
    if (!(this.rooms[name]?.[0].length >= size)) this.rooms[name] = Array.from({ length: count }, () => new Float64Array(size));
    return this.rooms[name];
  }

  // Certified graphs get their fixed point, others the state at which the paper's loop ends.
  solve(layers, { group, structure, sizes, inputs }, certified, sums) {
    const { n, starts } = structure, H = layers[0].H, [D, S, ...states] = this.roomFor(H * n, "solving", 4);
    layers.forEach((layer, i) => {
      const X = states[i % 2].fill(0, 0, H * n);
      if (i) layer.drive(states[(i + 1) % 2], n, D);
      else firstDrive(layer, n, inputs, D);
      if (certified) layer.solve(structure, D, SETTLED, [X, S.fill(0, 0, H * n)]);
      else follow(layer, structure, D, MOST_STEPS, SETTLED, X, (size) => this.roomFor(size, "following", 1)[0]);
      group.forEach((g, k) => {
        for (let h = 0; h < H; h++) {
          let total = 0;
          for (let v = starts[k]; v < starts[k + 1]; v++) total += sizes[v] * X[h * n + v];
          sums[i][g * H + h] = total;
        }
      });
    });
  }

  // Features (n_graphs, P) from pooled states: the shares of all workers.
  features({ seed, units: H }, shares) {
    const expansion = this.expansionOf(`${seed} ${H}`, seed, H), { P } = expansion, of = shares.length;
    const X = new Float64Array(this.graphs.length * P);
    this.graphs.forEach((_, g) => {
      const i = Math.floor(g / of);
      X.set(expansion.expand(shares[g % of].subarray(i * H, (i + 1) * H)), g * P);
    });
    return { X, P, expansion };
  }

  // Everything that follows from pooled states: held-out outputs and accuracy, the map, the certificates.
  train(settings, shares) {
    const start = performance.now(), n = this.graphs.length;
    const { X, P } = this.features(settings, shares), data = centered(X, n, P, this.Y, this.q);
    const radius = Math.max(...this.layersOf(settings, settings.depth).map(radiusOf));
    const outputs = heldOut(data, n, P, this.Y, this.q, settings.alpha, this.fold);
    const solved = performance.now();
    const map = principalMap(data.Z, n, P, this.axes?.[0].length === P ? this.axes : null);
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
    const n = this.graphs.length, readout = fitRidge(centered(X, n, P, this.Y, this.q), n, P, this.q, settings.alpha);
    const layers = this.layersOf(settings, settings.depth).map(({ inputs, recurrent, bias }) => ({ inputs, recurrent, bias }));
    return readout && { layers, projection: expansion.weights, units: settings.units, ...readout };
  }
}

const winner = (outputs) => (outputs.length === 1 ? Number(outputs[0] > 0) : outputs.indexOf(Math.max(...outputs)));

// A model from weights that a trainer gave.
export function trainedModel({ layers, projection, units, weights, intercept }, { kind, classes }) {
  const made = layers.map(({ inputs, recurrent, bias }) => new Layer(inputs, recurrent, bias));
  const reservoir = new Reservoir({
    layers: made, radii: made.map(radiusOf), n_inputs: kind.n_inputs,
    vocabulary: kind.vertices === "labels" ? kind.labels : null,
    parameters: { pooled_layers: "last", solver: "auto", tol: TOL, max_iter: MOST_STEPS, handle_unknown: "ignore" },
  });
  const block = { encoder: reservoir, expansion: new Expansion(projection, units), scale: 1 };
  return new Model({ estimators: [Estimator.of("reservoir", block, new LinearReadout(weights, intercept))], classes, kind });
}
