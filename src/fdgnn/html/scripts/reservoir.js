// The paper's encoder: layers of untrained units, each iterated to its fixed point.
//
//     X = tanh(U W_I^T + bias + A X W_H^T)                                                 (eq. 2)
//
// States are kept unit after unit: X[h * n + v] is the state of unit h at vertex v.

import { spectralBound, sumNeighbors } from "./graphs.js";
import { addRow } from "./numerics.js";

const SWEEPS = 20000; // at most, around a cycle of units

// The units of a layer, each after the units that it reads; units that read each other around a cycle are one part.
// Tarjan's strongly connected components.
function partsOf(sources, H, C) {
  const index = new Int32Array(H).fill(-1), lowest = new Int32Array(H), waiting = new Uint8Array(H), stack = [], parts = [];
  let count = 0;
  const visit = (h) => {
    index[h] = lowest[h] = count++;
    stack.push(h);
    waiting[h] = 1;
    for (const s of sources.subarray(h * C, h * C + C)) {
      if (index[s] < 0) visit(s);
      if (waiting[s]) lowest[h] = Math.min(lowest[h], lowest[s]);
    }
    if (lowest[h] < index[h]) return;
    const part = stack.splice(stack.lastIndexOf(h)).reverse(); // in the order in which states travel around a cycle
    for (const s of part) waiting[s] = 0;
    parts.push({ neurons: part, cycles: part.length > 1 || sources.subarray(h * C, h * C + C).includes(h) });
  };
  for (let h = 0; h < H; h++) if (index[h] < 0) visit(h);
  return parts;
}

// x[k ...] = tanh(d[i ...] + w s[j ...]), n entries; return the largest change.
function squashRow(D, i, w, S, j, X, k, n) {
  let change = 0;
  for (let v = 0; v < n; v++) {
    const x = Math.tanh(D[i + v] + w * S[j + v]), step = Math.abs(x - X[k + v]);
    if (step > change) change = step;
    X[k + v] = x;
  }
  return change;
}

// One layer: H units, each with connections to the input (`inputs`) and to its own layer (`recurrent`),
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
  drive(below, n) {
    const { sources, values } = this.inputs, D = new Float64Array(this.H * n), C = sources.length / this.H;
    for (let h = 0; h < this.H; h++) {
      D.fill(this.bias[h], h * n, (h + 1) * n);
      for (let k = h * C; k < h * C + C; k++) addRow(D, h * n, values[k], below, sources[k] * n, n);
    }
    return D;
  }

  // Set x[h] to tanh(D[h] + sum of W_H[h, s] (A x)[s]); return the largest change.
  evaluate(h, n, D, S, X) {
    const { sources, values } = this.recurrent, C = this.C, first = h * n, last = h * C + C - 1;
    const total = C > 1 ? D.slice(first, first + n) : D.subarray(first, first + n); // all but the last connection
    for (let k = h * C; k < last; k++) addRow(total, 0, values[k], S, sources[k] * n, n);
    return squashRow(total, 0, values[last], S, sources[last] * n, X, first, n);
  }

  // The fixed point, part by part; a cycle of units is swept until no state moves by more than `tol`.
  solve(structure, D, tol = 1e-15) {
    const { n } = structure, X = new Float64Array(this.H * n), S = new Float64Array(this.H * n);
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

  // One step of eq. 2 for all units at once: the new states, and how far they moved (Frobenius).
  step(structure, D, X) {
    const n = structure.n, S = new Float64Array(this.H * n), next = new Float64Array(X);
    let square = 0;
    for (let h = 0; h < this.H; h++) if (this.read[h]) sumNeighbors(structure, X, h * n, S, h * n);
    for (let h = 0; h < this.H; h++) this.evaluate(h, n, D, S, next);
    for (let i = 0; i < X.length; i++) square += (next[i] - X[i]) ** 2;
    return { states: next, distance: Math.sqrt(square) };
  }

  // The paper's loop from zero: until a step moves the states by less than `tol`, or for `most` steps.
  // `watch` is called after each step.
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

// Input of the first layer: a graph's labels (positions in the vocabulary, -1 for none), features (n rows of n_inputs),
// or without either, the constant 1.
function firstDrive(layer, n, { codes = null, features = null, n_inputs = 1 }) {
  const D = new Float64Array(layer.H * n), { sources, values } = layer.inputs, C = sources.length / layer.H;
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

// A drawn reservoir, with the vocabulary of vertex labels of its first layer.
export class Reservoir {
  constructor({ layers, radii, vocabulary, n_inputs, parameters, settled }) {
    this.kind = "reservoir";
    this.settled = settled; // the largest move of states in a sweep that has converged
    this.layers = layers;
    this.radii = radii; // rho(|W_H|) of each layer
    this.vocabulary = vocabulary && new Map(vocabulary.map((label, i) => [label, i]));
    this.takesUnseen = parameters.handle_unknown === "ignore";
    this.n_inputs = n_inputs;
    this.parameters = parameters;
    this.H = layers[0].H;
    this.pooledLayers = parameters.pooled_layers === "all" ? layers.map((_, i) => i) : [layers.length - 1];
    this.n_features = this.H * this.pooledLayers.length;
  }

  // rho(|W_H|) rho(|A|) of each layer: below 1, there is exactly one fixed point.
  contractions(structure, bound = spectralBound(structure)) {
    return Array.from(this.radii, (radius) => radius * bound);
  }

  inputs(graph) {
    const codes = this.vocabulary && graph.labels.map((label) => this.vocabulary.get(label) ?? -1);
    return { codes, features: graph.features, n_inputs: this.n_inputs };
  }

  // The states of all layers, [X, ...]. For a graph with a certificate, these are the fixed point, for others the last
  // states of the paper's loop.
  states(graph, structure, bound) {
    const literal = this.parameters.solver === "paper" || this.contractions(structure, bound).some((c) => !(c < 1));
    const found = [];
    this.layers.forEach((layer, i) => {
      const D = i ? layer.drive(found[i - 1], structure.n) : firstDrive(layer, structure.n, this.inputs(graph));
      found.push(literal
        ? layer.iterate(structure, D, this.parameters.tol, this.parameters.max_iter).states
        : layer.solve(structure, D, this.settled));
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

  // Features of a graph, and how a weighted sum of them is divided among its vertices.
  encode(graph, structure, bound) {
    const n = structure.n, all = this.states(graph, structure, bound), H = this.H;
    const features = new Float64Array(this.n_features);
    this.pooledLayers.forEach((i, slot) => {
      for (let h = 0; h < H; h++) for (let v = 0; v < n; v++) features[slot * H + h] += all[i][h * n + v];
    });
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
