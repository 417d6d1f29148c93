// The paper's encoder: layers of untrained neurons, each iterated to its fixed point.
//
//     X = tanh(U W_I^T + bias + A X W_H^T)                                                 (eq. 2)
//
// States are kept neuron after neuron: X[h * n + v] is what neuron h says of vertex v.

import { addRow, tanh } from "./algebra.js";
import { spectralBound, sumNeighbors } from "./graphs.js";

const SWEEPS = 20000; // around a cycle of neurons, at most

// The neurons of a layer in an order in which each comes after those that it reads; neurons that read
// each other around a cycle are one part. Tarjan's strongly connected components, without recursion.
export function partsOf(sources, H, C) {
  const index = new Int32Array(H).fill(-1), lowest = new Int32Array(H), next = new Int32Array(H);
  const waiting = new Uint8Array(H), stack = [], parts = [];
  let count = 0;
  for (let root = 0; root < H; root++) {
    if (index[root] >= 0) continue;
    const way = [root];
    while (way.length) {
      const h = way[way.length - 1];
      if (index[h] < 0) {
        index[h] = lowest[h] = count++;
        stack.push(h);
        waiting[h] = 1;
      }
      if (next[h] < C) {
        const s = sources[h * C + next[h]++];
        if (index[s] < 0) way.push(s);
        else if (waiting[s]) lowest[h] = Math.min(lowest[h], index[s]);
        continue;
      }
      way.pop();
      if (way.length) {
        const reader = way[way.length - 1];
        lowest[reader] = Math.min(lowest[reader], lowest[h]);
      }
      if (lowest[h] === index[h]) {
        const part = [];
        let s;
        do {
          s = stack.pop();
          waiting[s] = 0;
          part.push(s);
        } while (s !== h);
        parts.push({ neurons: inOrder(part, sources, C), cycles: part.length > 1 || reads(sources, C, h, h) });
      }
    }
  }
  return parts;
}

// x[k ...] = tanh(d[i ...] + w s[j ...]), n entries; give the largest change.
export function squashRow(D, i, w, S, j, X, k, n) {
  let change = 0;
  for (let v = 0; v < n; v++) {
    const x = tanh(D[i + v] + w * S[j + v]), step = Math.abs(x - X[k + v]);
    if (step > change) change = step;
    X[k + v] = x;
  }
  return change;
}

const reads = (sources, C, h, s) => sources.subarray(h * C, h * C + C).includes(s);

// The neurons of a cycle in the order in which states travel around it.
function inOrder(part, sources, C) {
  if (C > 1 || part.length < 3) return part;
  const order = [part[0]];
  while (order.length < part.length) order.push(sources[order[order.length - 1]]);
  return order.reverse();
}

// One layer: H neurons, each with connections to the input (`inputs`) and to its own layer (`recurrent`),
// {sources, values} of H * C entries.
export class Layer {
  constructor(inputs, recurrent, bias) {
    this.inputs = inputs;
    this.recurrent = recurrent;
    this.bias = bias;
    this.H = bias.length;
    this.C = recurrent.sources.length / this.H;
    this.parts = partsOf(recurrent.sources, this.H, this.C);
    this.read = new Uint8Array(this.H);
    for (const s of recurrent.sources) this.read[s] = 1;
  }

  // U W_I^T + bias for the states U of the layer below.
  drive(below, n, D = new Float64Array(this.H * n)) {
    const { sources, values } = this.inputs, C = sources.length / this.H;
    for (let h = 0; h < this.H; h++) {
      D.fill(this.bias[h], h * n, (h + 1) * n);
      for (let k = h * C; k < h * C + C; k++) addRow(D, h * n, values[k], below, sources[k] * n, n);
    }
    return D;
  }

  // Set x[h] to tanh(D[h] + sum of W_H[h, s] (A x)[s]); give the largest change.
  evaluate(h, n, D, S, X) {
    const { sources, values } = this.recurrent, C = this.C, first = h * n, last = h * C + C - 1;
    const total = C > 1 ? D.slice(first, first + n) : D.subarray(first, first + n); // all but the last connection
    for (let k = h * C; k < last; k++) addRow(total, 0, values[k], S, sources[k] * n, n);
    return squashRow(total, 0, values[last], S, sources[last] * n, X, first, n);
  }

  // The fixed point, part by part; a cycle of neurons is swept until no state moves by more than `tol`. X and S, the
  // states and their sums over neighbors, may be given as room to work in.
  solve(structure, D, tol = 1e-15, [X, S] = [0, 1].map(() => new Float64Array(this.H * structure.n))) {
    const { n } = structure;
    for (const { neurons, cycles } of this.parts) {
      for (let sweep = 0; sweep < (cycles ? SWEEPS : 1); sweep++) {
        let change = 0;
        for (const h of neurons) {
          change = Math.max(change, this.evaluate(h, n, D, S, X));
          if (this.read[h]) sumNeighbors(structure, X, h * n, S, h * n);
        }
        if (change <= tol) break;
      }
    }
    return X;
  }

  // One step of eq. 2 for all neurons at once: the new states, and how far they moved (Frobenius).
  step(structure, D, X) {
    const n = structure.n, S = new Float64Array(this.H * n), next = new Float64Array(X);
    let square = 0;
    for (let h = 0; h < this.H; h++) if (this.read[h]) sumNeighbors(structure, X, h * n, S, h * n);
    for (let h = 0; h < this.H; h++) this.evaluate(h, n, D, S, next);
    for (let i = 0; i < X.length; i++) square += (next[i] - X[i]) ** 2;
    return { states: next, distance: Math.sqrt(square) };
  }

  // The paper's loop from zero: until a step moves the states by less than `tol`, or for `most` steps.
  // `watch` is told of each step.
  iterate(structure, D, tol, most, watch = null) {
    let states = new Float64Array(this.H * structure.n), distance = Infinity, steps = 0;
    while (steps < most && distance >= tol) {
      ({ states, distance } = this.step(structure, D, states));
      steps += 1;
      if (watch) watch(states, distance);
    }
    return { states, distance, steps };
  }
}

// What the first layer receives from a graph's labels (numbers in the vocabulary, -1 for none), features
// (n rows of n_inputs), or, where there are neither, from the constant 1.
export function firstDrive(layer, n, { codes = null, features = null, n_inputs = 1 }, D = new Float64Array(layer.H * n)) {
  const { sources, values } = layer.inputs, C = sources.length / layer.H;
  for (let h = 0; h < layer.H; h++)
    for (let v = 0; v < n; v++) {
      let total = layer.bias[h];
      for (let k = h * C; k < h * C + C; k++) {
        if (features) total += values[k] * features[v * n_inputs + sources[k]];
        else if (sources[k] === (codes ? codes[v] : 0)) total += values[k];
      }
      D[h * n + v] = total;
    }
  return D;
}

// The sum of each neuron's states over all vertices.
export function pooled(X, H, n) {
  const sums = new Float64Array(H);
  for (let h = 0; h < H; h++) for (let v = 0; v < n; v++) sums[h] += X[h * n + v];
  return sums;
}

// A drawn reservoir, with the vertex labels that its first layer knows.
export class Reservoir {
  constructor({ layers, radii, vocabulary, n_inputs, parameters }) {
    this.kind = "reservoir";
    this.layers = layers;
    this.radii = radii; // rho(|W_H|) of each layer
    this.codes = vocabulary && new Map(vocabulary.map((label, i) => [label, i]));
    this.n_inputs = n_inputs;
    this.parameters = parameters;
    this.H = layers[0].H;
    this.pooledLayers = parameters.pooled_layers === "all" ? layers.map((_, i) => i) : [layers.length - 1];
    this.n_features = this.H * this.pooledLayers.length;
  }

  // rho(|W_H|) rho(|A|) of each layer: below 1 there is just one fixed point.
  contractions(structure) {
    const bound = spectralBound(structure);
    return Array.from(this.radii, (radius) => radius * bound);
  }

  // Vertex labels that no training graph has.
  unseen(graph) {
    if (!this.codes) return [];
    return [...new Set(graph.labels.filter((label) => !this.codes.has(label)))];
  }

  // Those that are refused.
  refused(graph) {
    return this.parameters.handle_unknown === "ignore" ? [] : this.unseen(graph);
  }

  inputs(graph) {
    const codes = this.codes && graph.labels.map((label) => this.codes.get(label) ?? -1);
    return { codes, features: graph.features, n_inputs: this.n_inputs };
  }

  // The states of all layers, [X, ...]. A graph that is certified to have just one fixed point gets it;
  // any other the states at which the paper's loop ends.
  states(graph, structure) {
    const literal = this.parameters.solver === "paper" || this.contractions(structure).some((c) => !(c < 1));
    const found = [];
    this.layers.forEach((layer, i) => {
      const D = i ? layer.drive(found[i - 1], structure.n) : firstDrive(layer, structure.n, this.inputs(graph));
      found.push(literal
        ? layer.iterate(structure, D, this.parameters.tol, this.parameters.max_iter).states
        : layer.solve(structure, D));
    });
    return found;
  }

  // The steps of the paper's loop, layer by layer: [[{states, distance}, ...], ...].
  trajectory(graph, structure, tol, most) {
    const found = [];
    let below = null;
    for (const layer of this.layers) {
      const D = below ? layer.drive(below, structure.n) : firstDrive(layer, structure.n, this.inputs(graph));
      const steps = [];
      below = layer.iterate(structure, D, tol, most, (states, distance) => steps.push({ states, distance })).states;
      found.push(steps);
    }
    return found;
  }

  // Features of a graph, and how a weighted sum of them is shared by its vertices.
  encode(graph, structure) {
    const n = structure.n, all = this.states(graph, structure), H = this.H;
    const features = new Float64Array(this.n_features);
    this.pooledLayers.forEach((i, slot) => features.set(pooled(all[i], H, n), slot * H));
    return {
      features,
      contributions: (direction) => {
        const shares = new Float64Array(n);
        this.pooledLayers.forEach((i, slot) => {
          for (let h = 0; h < H; h++)
            for (let v = 0; v < n; v++) shares[v] += direction[slot * H + h] * all[i][h * n + v];
        });
        return shares;
      },
    };
  }
}

// ---------------------------------------------------------------------- following

// The paper's loop for layers with one connection per neuron, where there may be several states at rest, or none.
//
// Neurons on a cycle read nobody else, so each cycle is followed alone. Any other neuron has after t steps what the
// neuron that it reads makes of t - 1 steps: only its last few states are needed, as many as the neurons that hang on
// it ask for. If a cycle comes to rest, one state is enough.


// The states after `most` steps from zero, to X, which is zero. A cycle that moves by less than `still` is at rest.
// `roomFor(size)` gives an array to work in.
export function follow(layer, structure, D, most, still, X, roomFor) {
  const { n } = structure, { sources, values } = layer.recurrent, lags = (layer.lags ??= lagsOf(layer));
  const n_rows = lags.reduce((sum, lag) => sum + lag + 1, 0), room = roomFor(n_rows * n).fill(0, 0, n_rows * n);
  const rows = new Array(layer.H); // rows[h][l] is where A x[h] is, l steps before the last; just one where h is at rest
  const step = (h, row) => squashRow(D, h * n, values[h], room, row, X, h * n, n);
  const sum = (h, row) => sumNeighbors(structure, X, h * n, room, row);
  let used = 0;
  for (let h = 0; h < layer.H; h++) rows[h] = Array.from({ length: lags[h] + 1 }, () => n * used++);
  for (const { neurons, cycles } of layer.parts) {
    if (cycles) {
      for (let t = 0, change = Infinity; t < most && change > still; t++) {
        change = 0;
        for (const h of neurons) change = Math.max(change, step(h, rows[sources[h]][0]));
        for (const h of neurons) {
          rows[h].unshift(rows[h].pop());
          sum(h, rows[h][0]);
        }
        if (change <= still) for (const h of neurons) rows[h].length = 1;
      }
    } else {
      const [h] = neurons, before = rows[sources[h]];
      if (before.length === 1) rows[h].length = 1;
      for (let l = Math.min(rows[h].length, most) - 1; l >= 0; l--) {
        step(h, before[Math.min(l + 1, before.length - 1)]);
        if (layer.read[h]) sum(h, rows[h][l]);
      }
    }
  }
}

// How many states before the last are asked for, of each neuron.
function lagsOf({ H, parts, recurrent: { sources } }) {
  const lags = new Int32Array(H);
  for (const { neurons: [h], cycles } of [...parts].reverse()) {
    if (!cycles) lags[sources[h]] = Math.max(lags[sources[h]], lags[h] + 1);
  }
  return lags;
}
