// From features to outputs, and how the outputs depend on the features: random expansion, linear
// readouts and RBF kernel ridge regression (fdgnn/expansion.py, fdgnn/readout). A row of features is {columns, values}, sparse.
//
// The gradient of a score, averaged on the straight way from the empty graph to a graph, times the graph's
// features is what the graph adds to the score. It has a closed form for each of these parts.

import { addRow, dotRow, tanh } from "./algebra.js";

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
    return this.project(x).map(tanh);
  }

  // Mean gradient of w . tanh(W_phi x) on the way from 0 to x: W_phi^T (w tanh(a) / a), a = W_phi x.
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
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x, sum = x;
  for (let k = 1; Math.abs(term) > 1e-17 * Math.abs(sum); k++) {
    term *= (2 * x * x) / (2 * k + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

// f(x) = sum_j a_j exp(-c |x - x_j|^2) + b. The examples x_j are kept by columns.
export class KernelReadout {
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

// softmax(a g(s)): g is s between the targets -1 and +1 and almost flat beyond (fdgnn/readout/calibration.py).
export function probabilities(outputs, slope) {
  const evidence = outputs.map((s) => Math.min(1, Math.max(-1, s)) + 1e-6 * s);
  const each = evidence.length === 1 ? [-0.5 * evidence[0], 0.5 * evidence[0]] : evidence;
  const largest = Math.max(...each.map((g) => slope * g));
  const powers = each.map((g) => Math.exp(slope * g - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((p) => p / total);
}
