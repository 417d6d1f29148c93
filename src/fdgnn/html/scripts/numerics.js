// Small dense linear algebra, and NumPy's random streams (SeedSequence and PCG64), so that a seed gives the
// same numbers as in Python. Matrices are Float64Array, row after row.

// The two inner loops. They are separate functions because browsers compile short functions that are called often
// much better than nested loops.

// to[i ...] += w from[j ...], n entries.
export function addRow(to, i, w, from, j, n) {
  for (let k = 0; k < n; k++) to[i + k] += w * from[j + k];
}

// The sum of a[i ...] b[j ...], n entries.
export function dotRow(a, i, b, j, n) {
  let total = 0;
  for (let k = 0; k < n; k++) total += a[i + k] * b[j + k];
  return total;
}

// Replace a symmetric positive definite matrix by its lower Cholesky factor; false if it is not positive definite.
export function cholesky(A, n) {
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) A[i * n + j] = (A[i * n + j] - dotRow(A, i * n, A, j * n, j)) / A[j * n + j];
    const square = A[i * n + i] - dotRow(A, i * n, A, i * n, i);
    if (!(square > 0)) return false;
    A[i * n + i] = Math.sqrt(square);
  }
  return true;
}

// Solve L x = b in place, for a column b of m entries per row: B (n, m).
export function solveLower(L, n, B, m) {
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) if (L[i * n + k] !== 0) addRow(B, i * m, -L[i * n + k], B, k * m, m);
    divideRow(B, i * m, L[i * n + i], m);
  }
}

// Solve L^T x = b in place.
export function solveUpper(L, n, B, m) {
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) addRow(B, i * m, -L[k * n + i], B, k * m, m);
    divideRow(B, i * m, L[i * n + i], m);
  }
}

function divideRow(B, i, by, n) {
  for (let k = 0; k < n; k++) B[i + k] /= by;
}

// X^T X (P, P) of X (n, P).
export function gram(X, n, P) {
  const G = new Float64Array(P * P);
  for (let r = 0; r < n; r++) for (let i = 0; i < P; i++) addRow(G, i * P, X[r * P + i], X, r * P, i + 1);
  for (let i = 0; i < P; i++) for (let j = i + 1; j < P; j++) G[i * P + j] = G[j * P + i];
  return G;
}

// X X^T (n, n) of X (n, P).
export function products(X, n, P) {
  const K = new Float64Array(n * n);
  for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) K[i * n + j] = K[j * n + i] = dotRow(X, i * P, X, j * P, P);
  return K;
}

// The largest eigenvalue of a symmetric positive semidefinite matrix. Repeated squaring, scaled to trace 1, converges
// to the projection onto the eigenvectors of this eigenvalue.
export function largestEigenvalue(matrix, n) {
  const trace = (A) => A.reduce((sum, a, i) => (i % (n + 1) ? sum : sum + a), 0);
  let power = matrix;
  for (let squarings = 0, purity = 0; squarings < 40 && purity < 1 - 1e-15; squarings++) {
    const total = trace(power);
    power = products(power.map((a) => a / total), n, n);
    purity = trace(power);
  }
  return dot(power, matrix) / trace(power);
}

// Two principal components (n, 2) of the centered rows of Z (n, P), and their shares of the variance. The search
// starts at `start`, the previous axes, so that the map turns as little as possible.
export function principalMap(Z, n, P, start = null) {
  let axes = start ?? [0, 1].map((k) => Float64Array.from({ length: P }, (_, p) => Math.cos(1 + p * (k + 1.3))));
  const values = [0, 0];
  for (let round = 0, turned = 1; round < 60 && turned > 1e-7; round++) {
    const next = axes.map((axis) => momentOf(Z, n, P, axis));
    for (const k of [0, 1]) {
      if (k) addRow(next[1], 0, -dot(next[0], next[1]), next[0], 0, P);
      values[k] = Math.sqrt(dot(next[k], next[k]));
      if (values[k] > 0) divideRow(next[k], 0, values[k], P);
    }
    turned = Math.max(...axes.map((axis, k) => 1 - Math.abs(dot(axis, next[k]))));
    axes = next;
  }
  const places = Array.from({ length: n }, (_, i) => axes.map((axis) => dotRow(axis, 0, Z, i * P, P)));
  return { places, axes, shares: values.map((value) => value / (dot(Z, Z) || 1)) };
}

// Z^T Z x.
function momentOf(Z, n, P, x) {
  const found = new Float64Array(P);
  for (let i = 0; i < n; i++) addRow(found, 0, dotRow(Z, i * P, x, 0, P), Z, i * P, P);
  return found;
}

const dot = (a, b) => dotRow(a, 0, b, 0, a.length);

// ---------------------------------------------------------------------- NumPy's random streams

const POOL = 4;

// numpy.random.SeedSequence(entropy, spawn_key).generate_state(words), all words of 32 bits.
function seedState(entropy, spawnKey, n_words) {
  const pool = new Uint32Array(POOL);
  let factor = 0x43b0d7e5;
  const hashed = (value) => {
    value = (value ^ factor) >>> 0;
    factor = Math.imul(factor, 0x931e8875) >>> 0;
    value = Math.imul(value, factor) >>> 0;
    return (value ^ (value >>> 16)) >>> 0;
  };
  const joined = (x, y) => {
    const both = (Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y)) >>> 0;
    return (both ^ (both >>> 16)) >>> 0;
  };
  const words = [...entropy];
  if (spawnKey.length) while (words.length < POOL) words.push(0);
  words.push(...spawnKey);
  for (let i = 0; i < POOL; i++) pool[i] = hashed(i < words.length ? words[i] : 0);
  for (let from = 0; from < POOL; from++)
    for (let to = 0; to < POOL; to++) if (from !== to) pool[to] = joined(pool[to], hashed(pool[from]));
  for (let i = POOL; i < words.length; i++)
    for (let to = 0; to < POOL; to++) pool[to] = joined(pool[to], hashed(words[i]));
  const state = new Uint32Array(n_words);
  let out = 0x8b51f9dd;
  for (let i = 0; i < n_words; i++) {
    let value = (pool[i % POOL] ^ out) >>> 0;
    out = Math.imul(out, 0x58f38ded) >>> 0;
    value = Math.imul(value, out) >>> 0;
    state[i] = value ^ (value >>> 16);
  }
  return state;
}

const FACTOR = 0x2360ed051fc65da44385df649fccf645n; // of PCG64

// numpy.random.Generator(PCG64(SeedSequence(entropy, spawn_key=key))).
export class Stream {
  // `entropy` and `key` are lists of words of 32 bits.
  constructor(entropy, key) {
    const words = Array.from(seedState(entropy, key, 8), BigInt); // four numbers of 64 bits, the lower half first
    const wide = (i) => (words[i + 1] << 96n) | (words[i] << 64n) | (words[i + 3] << 32n) | words[i + 2];
    this.increment = BigInt.asUintN(128, (wide(4) << 1n) | 1n);
    this.state = BigInt.asUintN(128, this.increment + wide(0));
    this.step();
    this.spare = null; // the upper half of a number whose lower half was used
  }

  step() {
    this.state = BigInt.asUintN(128, this.state * FACTOR + this.increment);
  }

  // The next 64 bits: xor of the halves of the state, rotated by its highest six bits.
  bits() {
    this.step();
    const halves = BigInt.asUintN(64, this.state ^ (this.state >> 64n)), by = this.state >> 122n;
    return (halves >> by) | BigInt.asUintN(64, halves << (64n - by));
  }

  // The next 32 bits.
  word() {
    const { spare } = this;
    this.spare = null;
    if (spare !== null) return spare;
    const drawn = this.bits();
    this.spare = Number(drawn >> 32n);
    return Number(BigInt.asUintN(32, drawn));
  }

  // `integers(n, size=count)`: Lemire's method, usually without a remainder.
  integers(n, count) {
    const found = new Int32Array(count);
    if (n === 1) return found;
    const least = (4294967296 - n) % n, wide = BigInt(n);
    for (let i = 0; i < count; i++) {
      let product;
      do product = BigInt(this.word()) * wide; while (BigInt.asUintN(32, product) < least);
      found[i] = Number(product >> 32n);
    }
    return found;
  }

  // `uniform(-1, 1, size=count)`.
  uniform(count) {
    return Float64Array.from({ length: count }, () => -1 + 2 * (Number(this.bits() >> 11n) / 9007199254740992));
  }
}

// Which stream draws which matrix, as `fdgnn.seeds.Matrix`.
export const MATRIX = { input: 0, recurrent: 1, bias: 2, projection: 3 };
