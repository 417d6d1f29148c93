// NumPy's random streams: SeedSequence and PCG64, so that a seed means here what it means in Python.

import { upper } from "./hashing.js";

const POOL = 4;
const drawn = new Uint32Array(2); // the last 64 bits, the upper word first

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

// PCG64's factor of 128 bits, the lowest word first.
const FACTOR = [0x9fccf645, 0x4385df64, 0x1fc65da4, 0x2360ed05];

// numpy.random.Generator(PCG64(SeedSequence(entropy, spawn_key=key))).
export class Stream {
  // `entropy` and `key` are lists of words of 32 bits.
  constructor(entropy, key) {
    const seed = seedState(entropy, key, 8); // four words of 64 bits, the lower half first
    const wide = (i) => [seed[i + 2], seed[i + 3], seed[i], seed[i + 1]]; // 128 bits, lowest first
    const increment = wide(4);
    this.increment = Uint32Array.from(increment, (word, i) =>
      (word << 1) | (i ? increment[i - 1] >>> 31 : 1));
    this.state = new Uint32Array(4);
    this.step();
    add(this.state, wide(0));
    this.step();
    this.spare = null; // the upper half of a number of which the lower half was used
  }

  // state = state * FACTOR + increment, in 128 bits.
  step() {
    const a = this.state[0], b = this.state[1], c = this.state[2], d = this.state[3];
    const result = this.state;
    let low, sum, carry, next;
    low = Math.imul(a, FACTOR[0]) >>> 0;
    carry = upper(a, FACTOR[0], low);
    result[0] = low;
    low = Math.imul(a, FACTOR[1]) >>> 0;
    next = upper(a, FACTOR[1], low);
    sum = carry + low;
    low = Math.imul(b, FACTOR[0]) >>> 0;
    next += upper(b, FACTOR[0], low);
    sum += low;
    result[1] = sum;
    carry = next + Math.floor(sum / 4294967296);
    low = Math.imul(a, FACTOR[2]) >>> 0;
    next = upper(a, FACTOR[2], low);
    sum = carry + low;
    low = Math.imul(b, FACTOR[1]) >>> 0;
    next += upper(b, FACTOR[1], low);
    sum += low;
    low = Math.imul(c, FACTOR[0]) >>> 0;
    next += upper(c, FACTOR[0], low);
    sum += low;
    result[2] = sum;
    carry = next + Math.floor(sum / 4294967296);
    result[3] = (carry % 4294967296) + (Math.imul(a, FACTOR[3]) >>> 0) + (Math.imul(b, FACTOR[2]) >>> 0)
      + (Math.imul(c, FACTOR[1]) >>> 0) + (Math.imul(d, FACTOR[0]) >>> 0);
    add(result, this.increment);
  }

  // The next 64 bits, to `drawn`: xor of the halves of the state, turned by its highest six bits.
  bits() {
    this.step();
    const s = this.state;
    let low = (s[0] ^ s[2]) >>> 0, high = (s[1] ^ s[3]) >>> 0;
    const by = s[3] >>> 26;
    if (by & 32) {
      const kept = high;
      high = low;
      low = kept;
    }
    const turn = by & 31;
    drawn[0] = turn ? (high >>> turn) | (low << (32 - turn)) : high;
    drawn[1] = turn ? (low >>> turn) | (high << (32 - turn)) : low;
  }

  word() {
    if (this.spare !== null) {
      const word = this.spare;
      this.spare = null;
      return word;
    }
    this.bits();
    this.spare = drawn[0];
    return drawn[1];
  }

  // `integers(n, size=count)`: Lemire's way, without a remainder where it can.
  integers(n, count) {
    const found = new Int32Array(count);
    if (n === 1) return found;
    const least = (4294967296 - n) % n;
    for (let i = 0; i < count; i++) {
      let word, low;
      do {
        word = this.word();
        low = Math.imul(word, n) >>> 0;
      } while (low < least);
      found[i] = upper(word, n, low);
    }
    return found;
  }

  // `uniform(-1, 1, size=count)`.
  uniform(count) {
    const found = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      this.bits();
      found[i] = -1 + 2 * ((drawn[0] * 2097152 + (drawn[1] >>> 11)) / 9007199254740992);
    }
    return found;
  }
}

// total += other, in 128 bits.
function add(total, other) {
  let carry = 0;
  for (let i = 0; i < 4; i++) {
    const sum = total[i] + other[i] + carry;
    total[i] = sum;
    carry = sum > 4294967295 ? 1 : 0;
  }
}

// Which stream draws which matrix, as `fdgnn.seeds.Matrix`.
export const MATRIX = { input: 0, recurrent: 1, bias: 2, projection: 3 };
