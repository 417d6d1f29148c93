// Small dense linear algebra; matrices are Float64Array, row after row.

// The lower Cholesky factor of a symmetric positive definite matrix, in its own place; false if it is none.
export function cholesky(A, n) {
  for (let j = 0; j < n; j++) {
    let diagonal = A[j * n + j];
    for (let k = 0; k < j; k++) diagonal -= A[j * n + k] * A[j * n + k];
    if (!(diagonal > 0)) return false;
    const root = Math.sqrt(diagonal);
    A[j * n + j] = root;
    for (let i = j + 1; i < n; i++) {
      let total = A[i * n + j];
      const a = i * n, b = j * n;
      for (let k = 0; k < j; k++) total -= A[a + k] * A[b + k];
      A[a + j] = total / root;
    }
  }
  return true;
}

// Solve L x = b in place, for a column b of m entries per row: B (n, m).
export function solveLower(L, n, B, m) {
  for (let i = 0; i < n; i++) {
    const row = i * m;
    for (let k = 0; k < i; k++) {
      const factor = L[i * n + k], other = k * m;
      if (factor !== 0) for (let c = 0; c < m; c++) B[row + c] -= factor * B[other + c];
    }
    const diagonal = L[i * n + i];
    for (let c = 0; c < m; c++) B[row + c] /= diagonal;
  }
}

// Solve L^T x = b in place.
export function solveUpper(L, n, B, m) {
  for (let i = n - 1; i >= 0; i--) {
    const row = i * m;
    for (let k = i + 1; k < n; k++) {
      const factor = L[k * n + i], other = k * m;
      for (let c = 0; c < m; c++) B[row + c] -= factor * B[other + c];
    }
    const diagonal = L[i * n + i];
    for (let c = 0; c < m; c++) B[row + c] /= diagonal;
  }
}

// X^T X (P, P) of X (n, P).
export function gram(X, n, P) {
  const G = new Float64Array(P * P);
  for (let r = 0; r < n; r++)
    for (let i = 0; i < P; i++) {
      const x = X[r * P + i], row = i * P, own = r * P;
      if (x !== 0) for (let j = 0; j <= i; j++) G[row + j] += x * X[own + j];
    }
  for (let i = 0; i < P; i++) for (let j = i + 1; j < P; j++) G[i * P + j] = G[j * P + i];
  return G;
}

// X X^T (n, n) of X (n, P).
export function products(X, n, P) {
  const K = new Float64Array(n * n);
  for (let i = 0; i < n; i++)
    for (let j = 0; j <= i; j++) {
      let total = 0;
      for (let k = 0; k < P; k++) total += X[i * P + k] * X[j * P + k];
      K[i * n + j] = K[j * n + i] = total;
    }
  return K;
}

// The largest eigenvalue of a symmetric matrix: reflections to three diagonals, then bisection.
export function largestEigenvalue(matrix, n) {
  const A = Float64Array.from(matrix), d = new Float64Array(n), e = new Float64Array(n);
  for (let k = 0; k < n - 2; k++) {
    let square = 0;
    for (let i = k + 1; i < n; i++) square += A[i * n + k] ** 2;
    const first = A[(k + 1) * n + k], length = Math.sqrt(square);
    const target = first > 0 ? -length : length;
    e[k + 1] = target;
    if (length === 0) continue;
    const v = new Float64Array(n), w = new Float64Array(n);
    for (let i = k + 1; i < n; i++) v[i] = A[i * n + k];
    v[k + 1] -= target;
    let norm = 0;
    for (let i = k + 1; i < n; i++) norm += v[i] * v[i];
    if (norm === 0) continue;
    for (let i = k + 1; i < n; i++) {
      let total = 0;
      for (let j = k + 1; j < n; j++) total += A[i * n + j] * v[j];
      w[i] = (2 * total) / norm;
    }
    let along = 0;
    for (let i = k + 1; i < n; i++) along += v[i] * w[i];
    along /= norm;
    for (let i = k + 1; i < n; i++) w[i] -= along * v[i];
    for (let i = k + 1; i < n; i++)
      for (let j = k + 1; j < n; j++) A[i * n + j] -= v[i] * w[j] + w[i] * v[j];
  }
  if (n > 1) e[n - 1] = A[(n - 1) * n + n - 2];
  for (let i = 0; i < n; i++) d[i] = A[i * n + i];
  let low = -Infinity, high = -Infinity;
  for (let i = 0; i < n; i++) {
    high = Math.max(high, d[i] + Math.abs(e[i]) + Math.abs(i + 1 < n ? e[i + 1] : 0));
    low = Math.max(low, d[i]);
  }
  while (high - low > 4e-16 * Math.abs(high)) { // are all eigenvalues below the middle?
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    let q = d[0] - middle, below = q < 0;
    for (let i = 1; i < n && below; i++) {
      q = d[i] - middle - (e[i] * e[i]) / (q || -1e-300);
      below = q < 0;
    }
    if (below) high = middle;
    else low = middle;
  }
  return (low + high) / 2;
}

// Two principal components (n, 2) of the rows of X (n, P), and their shares of the variance. The search begins
// at `start`, the axes of last time, so that a map turns as little as it must.
export function principalMap(X, n, P, start = null) {
  const mean = new Float64Array(P), Z = Float64Array.from(X);
  for (let i = 0; i < n; i++) for (let p = 0; p < P; p++) mean[p] += X[i * P + p] / n;
  for (let i = 0; i < n; i++) for (let p = 0; p < P; p++) Z[i * P + p] -= mean[p];
  const G = gram(Z, n, P);
  let axes = start ?? [0, 1].map((k) => Float64Array.from({ length: P }, (_, p) => Math.cos(1 + p * (k + 1.3))));
  const values = [0, 0];
  for (let round = 0; round < 60; round++) {
    axes = axes.map((axis) => times(G, P, axis));
    for (const k of [0, 1]) {
      if (k) {
        const along = dot(axes[0], axes[1]);
        axes[1] = axes[1].map((x, p) => x - along * axes[0][p]);
      }
      values[k] = Math.sqrt(dot(axes[k], axes[k]));
      if (values[k] > 0) axes[k] = axes[k].map((x) => x / values[k]);
    }
  }
  let total = 0;
  for (let p = 0; p < P; p++) total += G[p * P + p];
  const places = Array.from({ length: n }, (_, i) => axes.map((axis) => dot(axis, Z.subarray(i * P, (i + 1) * P))));
  return { places, axes, shares: values.map((value) => value / (total || 1)) };
}

function times(G, P, x) {
  return Float64Array.from(x, (_, i) => dot(G.subarray(i * P, (i + 1) * P), x));
}

function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}
