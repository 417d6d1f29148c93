// Whole numbers of 64 bits as pairs of 32, and the hashes of labels: the same bits as in Python.

// The upper word of a product of two words of 32 bits, whose lower one is known. The product of two
// doubles is wrong by at most 2^11, so that after division by 2^32 rounding gives the whole number.
export const upper = (a, b, low) => Math.round((a * b - low) / 4294967296);

// Scatter 64 bits (the finalizer of SplitMix), as `mix` in src/kernels/hashing.hpp:
//   z += g;  z = (z ^ z >> 30) * a;  z = (z ^ z >> 27) * b;  z ^ z >> 31
// The result is in `mixed`: the upper word, then the lower one.
export const mixed = new Uint32Array(2);

export function mix(zh, zl) {
  const sum = zl + 0x7f4a7c15;
  let h = (zh + 0x9e3779b9 + (sum > 0xffffffff ? 1 : 0)) >>> 0;
  let l = sum >>> 0;
  let x = (h ^ (h >>> 30)) >>> 0, y = (l ^ ((l >>> 30) | (h << 2))) >>> 0;
  l = Math.imul(y, 0x1ce4e5b9) >>> 0;
  h = (upper(y, 0x1ce4e5b9, l) + Math.imul(x, 0x1ce4e5b9) + Math.imul(y, 0xbf58476d)) >>> 0;
  x = (h ^ (h >>> 27)) >>> 0;
  y = (l ^ ((l >>> 27) | (h << 5))) >>> 0;
  l = Math.imul(y, 0x133111eb) >>> 0;
  h = (upper(y, 0x133111eb, l) + Math.imul(x, 0x133111eb) + Math.imul(y, 0x94d049bb)) >>> 0;
  mixed[0] = h ^ (h >>> 31);
  mixed[1] = l ^ ((l >>> 31) | (h << 1));
}

// A row of words [[high, low], ...] as one color: `mix_rows` in src/kernels/hashing.hpp.
export function mixRow(words) {
  let h = 0, l = words.length;
  for (const [wh, wl] of words) {
    mix((h ^ wh) >>> 0, (l ^ wl) >>> 0);
    h = mixed[0];
    l = mixed[1];
  }
  return [h, l];
}

// A whole number as 64 bits, negative ones as two's complement.
export function wordsOf(number) {
  const bits = BigInt.asUintN(64, BigInt(number));
  return [Number(bits >> 32n), Number(bits & 0xffffffffn)];
}

// ---------------------------------------------------------------------- hashes of labels

const ESCAPES = new Map([["\\", "\\\\"], ["\n", "\\n"], ["\r", "\\r"], ["\t", "\\t"]]);
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/u;

// What Python's repr() gives of a label.
export function pythonText(label) {
  if (typeof label === "number") return String(label);
  const quote = label.includes("'") && !label.includes('"') ? '"' : "'";
  let text = "";
  for (const character of label) {
    if (character === quote) text += `\\${character}`;
    else if (ESCAPES.has(character)) text += ESCAPES.get(character);
    else if (character === " " || !UNPRINTABLE.test(character)) text += character;
    else text += escaped(character.codePointAt(0));
  }
  return quote + text + quote;
}

function escaped(code) {
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

const known = new Map();

// The 64 bits of a label, [high, low]: BLAKE2b of its text, as `hash_values` gives them.
export function hashLabel(label) {
  const text = pythonText(label);
  if (!known.has(text)) known.set(text, blake2b(new TextEncoder().encode(text)));
  return known.get(text);
}

const MASK = (1n << 64n) - 1n;
const START = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const ORDER = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
const LANES = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
];

// BLAKE2b (RFC 7693) without a key, with 8 bytes of output; [high, low] of them, the first the lowest.
function blake2b(bytes) {
  const state = [...START];
  state[0] ^= 0x01010000n ^ 8n;
  const n_blocks = Math.max(1, Math.ceil(bytes.length / 128));
  for (let b = 0; b < n_blocks; b++) {
    const block = new Uint8Array(128);
    block.set(bytes.subarray(128 * b, 128 * (b + 1)));
    const words = new BigUint64Array(block.buffer);
    const last = b === n_blocks - 1;
    compress(state, words, BigInt(last ? bytes.length : 128 * (b + 1)), last);
  }
  return [Number(state[0] >> 32n), Number(state[0] & 0xffffffffn)];
}

function compress(state, words, count, last) {
  const v = [...state, ...START];
  v[12] ^= count;
  if (last) v[14] ^= MASK;
  const turned = (value, by) => ((value >> by) | (value << (64n - by))) & MASK;
  for (let round = 0; round < 12; round++) {
    const order = ORDER[round % 10];
    LANES.forEach(([a, b, c, d], i) => {
      v[a] = (v[a] + v[b] + words[order[2 * i]]) & MASK;
      v[d] = turned(v[d] ^ v[a], 32n);
      v[c] = (v[c] + v[d]) & MASK;
      v[b] = turned(v[b] ^ v[c], 24n);
      v[a] = (v[a] + v[b] + words[order[2 * i + 1]]) & MASK;
      v[d] = turned(v[d] ^ v[a], 16n);
      v[c] = (v[c] + v[d]) & MASK;
      v[b] = turned(v[b] ^ v[c], 63n);
    });
  }
  for (let i = 0; i < 8; i++) state[i] ^= v[i] ^ v[i + 8];
}
