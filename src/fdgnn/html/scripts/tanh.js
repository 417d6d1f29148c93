// tanh within 1e-15, in plain arithmetic that the browser compiles into the loop around it. Math.tanh is a call, which
// takes twice as long.
//
// For a = k / 64, the nearest such number to x, and a small b = x - a:
//
//     tanh(a + b) = (tanh(a) + tanh(b)) / (1 + tanh(a) tanh(b))
//
// tanh(a) is in a table, and tanh(b) = b - b^3 / 3 + 2 b^5 / 15 - 17 b^7 / 315.

const LARGEST = 20; // beyond it tanh is 1 to the last digit
const MIDDLE = 64 * LARGEST, ROUNDING = 6755399441055744; // 1.5 * 2^52: adding it rounds to a whole number
const TABLE = Float64Array.from({ length: 2 * MIDDLE + 1 }, (_, i) => Math.tanh((i - MIDDLE) / 64));

export function tanh(x) {
  if (!(x < LARGEST)) return x >= LARGEST ? 1 : NaN;
  if (x < -LARGEST) return -1;
  const k = x * 64 + ROUNDING - ROUNDING, b = x - k / 64, q = b * b;
  const far = TABLE[k + MIDDLE], near = b + b * q * (-1 / 3 + q * (2 / 15 - q * (17 / 315)));
  return (far + near) / (1 + far * near);
}
