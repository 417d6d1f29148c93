// NumPy's random streams: SeedSequence and PCG64, so that a seed means here what it means in Python.

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
    this.spare = null; // the upper half of a number of which the lower half was used
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

  // `integers(n, size=count)`: Lemire's method, without a remainder where it can.
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
