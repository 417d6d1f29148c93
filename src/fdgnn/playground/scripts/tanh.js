// tanh(x) = 1 - 2 / (exp(2x) + 1) within 1e-15, in plain arithmetic that the browser compiles into the loop around
// it. Math.tanh is a call, which takes twice as long.
//
// exp(2x) = 2^(k / 64) exp(r) for the whole k that makes r small; powers of two come from tables.

const PARTS = 64, LARGEST = 20; // beyond it tanh is 1 to the last digit
const FINE = Float64Array.from({ length: PARTS }, (_, i) => 2 ** (i / PARTS));
const WHOLE = Float64Array.from({ length: 2 * 60 + 1 }, (_, i) => 2 ** (i - 60));
const PER_PART = Math.LN2 / PARTS, ROUNDING = 6755399441055744; // 1.5 * 2^52: adding it rounds to a whole number

export function tanh(x) {
  if (!(x < LARGEST)) return x >= LARGEST ? 1 : NaN;
  if (x < -LARGEST) return -1;
  const k = (2 * x) / PER_PART + ROUNDING - ROUNDING, r = 2 * x - k * PER_PART;
  const near = r + r * r * (1 / 2 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r / 720))));
  const power = WHOLE[(k >> 6) + 60] * FINE[k & 63];
  return 1 - 2 / (power + power * near + 1);
}
