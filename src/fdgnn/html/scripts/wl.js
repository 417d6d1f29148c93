// Weisfeiler-Lehman features: labels of 64 bits, refined iteration by iteration and counted, bitwise as in Python
// (fdgnn/encoders/wl.py). They are BigInt; browsers compile operations that are cut to 64 bits at once to plain arithmetic.

const cut = (number) => BigInt.asUintN(64, number);

// Scatter 64 bits (the finalizer of SplitMix), as `mix` in src/kernels/hashing.hpp.
function mix(number) {
  const a = cut(number + 0x9e3779b97f4a7c15n), b = cut((a ^ (a >> 30n)) * 0xbf58476d1ce4e5b9n);
  const c = cut((b ^ (b >> 27n)) * 0x94d049bb133111ebn);
  return c ^ (c >> 31n);
}

// A row of numbers as one WL label: `mix_rows` in src/kernels/hashing.hpp.
const mixRow = (row) => row.reduce((label, number) => mix(label ^ number), BigInt(row.length));

// ---------------------------------------------------------------------- hashes of labels

const ESCAPES = new Map([["\\", "\\\\"], ["\n", "\\n"], ["\r", "\\r"], ["\t", "\\t"]]);
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/u;

// The repr() of a label in Python.
function pythonText(label) {
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

// The 64 bits of a label: BLAKE2b of its text, as `hash_values` gives them.
function hashLabel(label) {
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

// BLAKE2b (RFC 7693) without a key, with 8 bytes of output, the lowest first.
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
  return state[0];
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

// ---------------------------------------------------------------------- first labels

const COARSE = 4; // bins of a feature that are refined

// Powers of the root of two: numbers 1 + x fall into two bins each time that they double.
const EDGES = [];
for (let i = 0; i < 64; i++) EDGES.push(Math.SQRT2 * 2 ** i, 2 ** (i + 1));
EDGES.sort((a, b) => a - b);

// How many ascending edges are at most the value, or below it.
const atMost = (edges, value) => edges.reduce((count, edge) => count + (edge <= value), 0);
const below = (edges, value) => edges.reduce((count, edge) => count + (edge < value), 0);

const logBin = (value) => atMost(EDGES, 1 + value);

// WL labels of integers, or of rows of integers, that differ from those of any other name.
function hashed(rows, name) {
  const salt = hashLabel(name);
  return rows.map((row) => mixRow([salt, ...[row].flat().map((number) => cut(BigInt(number)))]));
}

const degreesOf = ({ n, indptr }) => Array.from({ length: n }, (_, v) => indptr[v + 1] - indptr[v]);

// ---------------------------------------------------------------------- structure

function trianglesAt({ n, indptr, neighbors }, v) {
  const near = new Set(neighbors.subarray(indptr[v], indptr[v + 1]));
  near.delete(v);
  let found = 0;
  for (const u of near)
    for (let a = indptr[u]; a < indptr[u + 1]; a++) if (neighbors[a] !== u && near.has(neighbors[a])) found += 1;
  return Math.floor(found / 2);
}

// Numbers of each vertex's neighborhood, each in bins, by name.
function structureNumbers(structure) {
  const { n, indptr, neighbors } = structure, degree = degreesOf(structure);
  const near = (v) => Array.from(neighbors.subarray(indptr[v], indptr[v + 1]), (u) => degree[u]);
  const numbers = new Map();
  const tell = (name, of) => numbers.set(name, Array.from({ length: n }, (_, v) => of(v, degree[v], near(v))));
  const sum = (values) => values.reduce((a, b) => a + b, 0);
  tell("degree", (v, d) => logBin(d));
  tell("neighbors' mean degree", (v, d, all) => logBin(sum(all) / Math.max(d, 1)));
  tell("neighbors' largest degree", (v, d, all) => logBin(Math.max(0, ...all)));
  tell("neighbors' smallest degree", (v, d, all) => logBin(all.length ? Math.min(...all) : 0));
  tell("deviation of neighbors' degrees", (v, d, all) => {
    const count = Math.max(d, 1);
    return logBin(Math.sqrt(sum(all.map((x) => x * x)) * count - sum(all) ** 2) / count);
  });
  const triangles = Array.from({ length: n }, (_, v) => trianglesAt(structure, v));
  tell("triangles", (v) => logBin(triangles[v]));
  tell("degree over graph size", (v, d) => Math.floor((20 * d) / n));
  tell("linked pairs of neighbors", (v, d) =>
    Math.floor((20 * triangles[v]) / Math.max(Math.floor((d * (d - 1)) / 2), 1)));
  return numbers;
}

const PAIRS = [
  ["degree", "neighbors' mean degree"], ["degree", "neighbors' largest degree"], ["degree", "triangles"],
  ["degree", "degree over graph size"], ["degree", "linked pairs of neighbors"],
  ["neighbors' mean degree", "deviation of neighbors' degrees"],
];

function histograms(structure) {
  const numbers = structureNumbers(structure);
  const single = [...numbers].map(([name, bins]) => ({ name, first: hashed(bins, `histogram ${name}`), rounds: 0 }));
  const paired = PAIRS.map(([a, b]) => ({
    name: `${a}, ${b}`,
    first: hashed(numbers.get(a).map((bin, v) => [bin, numbers.get(b)[v]]), `histogram ${a}, ${b}`),
    rounds: 0,
  }));
  return [...single, ...paired];
}

// ---------------------------------------------------------------------- real features

// Fine bins are counted, coarse bins are refined: as rows if there are few, else one by one.
function featureChannels({ features, n }, { featureEdges, joint, n_iterations }) {
  const width = featureEdges.length;
  const bins = featureEdges.map((edges, j) =>
    Array.from({ length: n }, (_, v) => below(edges, features[v * width + j])));
  const coarse = bins.map((column, j) => {
    const n_bins = featureEdges[j].length + 1;
    return n_bins > COARSE ? column.map((bin) => Math.floor((bin * COARSE) / n_bins)) : column;
  });
  const fine = bins.map((column, j) => ({ name: `feature ${j}`, first: hashed(column, `feature ${j}`), rounds: 0 }));
  if (joint) {
    const rows = Array.from({ length: n }, (_, v) => coarse.map((column) => column[v]));
    return [{ name: "features", first: hashed(rows, "features"), rounds: n_iterations }, ...fine];
  }
  const each = coarse.map((column, j) => (
    { name: `feature ${j}, coarse`, first: hashed(column, `coarse ${j}`), rounds: n_iterations }));
  return [...each, ...fine];
}

// ---------------------------------------------------------------------- all of them

// The channels of a graph: name, first WL labels and how often they are refined.
function channelsOf(graph, structure, settings) {
  const { first, n_iterations } = settings, found = [];
  if (first === "labels") found.push({ name: "label", first: graph.labels.map(hashLabel), rounds: n_iterations });
  else if (first === "element") {
    const elements = graph.labels.map((label) => `${label}`.split(" ", 1)[0]);
    found.push({ name: "element", first: elements.map(hashLabel), rounds: n_iterations });
  } else if (first === "features") found.push(...featureChannels(graph, settings));
  else if (first === "nothing") {
    found.push({ name: "vertex", first: hashed(new Array(structure.n).fill(0), "vertex"), rounds: n_iterations });
  } else {
    const degree = degreesOf(structure);
    const binned = first === "log degree" ? degree.map(logBin) : degree;
    found.push({ name: first, first: hashed(binned, first), rounds: n_iterations });
  }
  if (settings.histograms) found.push(...histograms(structure));
  return found;
}

// The 64 bits of each arc's label or weight, or null if arcs have none. A graph without arcs has no arc labels.
function arcBits({ arcLabels, weights }, { labeledArcs, weightedArcs, weightEdges }) {
  const labels = labeledArcs ? (arcLabels ?? []).map(hashLabel) : null;
  if (!weightedArcs) return labels;
  const levels = Array.from(weights ?? [], (w) => (weightEdges ? below(weightEdges, w) : roundToEven(w)));
  const carried = hashed(levels, "weight");
  return labels ? carried.map((bits, a) => bits ^ labels[a]) : carried;
}

function roundToEven(value) {
  const near = Math.round(value);
  return Math.abs(value - Math.trunc(value)) === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

// ---------------------------------------------------------------------- WL labels

//     total(v)  = sum over arcs (u, v) of mix(mix(label(u)) ^ arc)
//     label'(v) = mix(label(v) ^ mix(total(v)))

const OUTWARD = 0xd1b54a32d192ed03n; // distinguishes arcs that leave a vertex from arcs that enter it

// One iteration: from WL labels of all vertices to the next ones.
function refine({ n, indptr, neighbors, directed }, bits, labels) {
  const scattered = labels.map(mix), next = new BigUint64Array(n), outward = new BigUint64Array(n);
  for (let v = 0; v < n; v++) {
    let total = 0n;
    for (let a = indptr[v]; a < indptr[v + 1]; a++) {
      const u = neighbors[a], carried = bits ? bits[a] : 0n;
      total += bits ? mix(scattered[u] ^ carried) : scattered[u];
      if (directed) outward[u] += mix(scattered[v] ^ carried ^ OUTWARD);
    }
    next[v] = mix(labels[v] ^ mix(cut(total)));
  }
  return directed ? next.map((label, v) => mix(label ^ outward[v])) : next;
}

// Which vertices have the same WL label: the number of each vertex's group, in order of first appearance.
function groupsOf(labels) {
  const numbers = new Map();
  return Int32Array.from(labels, (label) => {
    if (!numbers.has(label)) numbers.set(label, numbers.size);
    return numbers.get(label);
  });
}

class LabelCounts {
  // `settings`: first, histograms, n_iterations, counts, mask or columns, labeledArcs, weightedArcs, and edges.
  constructor(kind, settings) {
    const { n_features, vocabulary, takesUnseen } = settings;
    Object.assign(this, { kind, settings, n_features, vocabulary, takesUnseen });
  }
}

export class WLCounts extends LabelCounts {
  // Edge labels that no training graph has, if the model has a vocabulary of edge labels.
  unseenEdges(graph) {
    const { arcVocabulary, labeledArcs } = this.settings;
    if (!labeledArcs || !arcVocabulary || !graph.edgeLabels) return [];
    return graph.edgeLabels.filter((label) => !arcVocabulary.has(label));
  }

  // WL labels by channel and iteration: [{channel, round, labels, groups}, ...].
  rows(graph, structure) {
    const bits = arcBits(structure, this.settings), found = [];
    for (const { name, first, rounds } of channelsOf(graph, structure, this.settings)) {
      let labels = BigUint64Array.from(first);
      for (let round = 0; round <= rounds; round++) {
        if (round) labels = refine(structure, bits, labels);
        found.push({ channel: name, round, labels, groups: groupsOf(labels) });
      }
    }
    return found;
  }

  // The column of each vertex's feature: "there are more than this number of vertices of this label".
  columnsOf({ labels, groups }) {
    const { counts, mask, columns } = this.settings, seen = new Map();
    return Int32Array.from(groups, (group, v) => {
      const number = counts === "unary" ? (seen.get(group) ?? 0) : 0;
      seen.set(group, number + 1);
      const feature = mix(cut(labels[v] + BigInt(number)));
      return columns ? columns.get(feature) ?? -1 : Number(feature & 0xffffffffn) & mask;
    });
  }

  // Counts as a sparse row, and how a weighted sum of them is divided among the vertices.
  encode(graph, structure) {
    const rows = this.rows(graph, structure);
    for (const row of rows) row.columns = this.columnsOf(row);
    const often = new Map();
    for (const row of rows) for (const c of row.columns) if (c >= 0) often.set(c, (often.get(c) ?? 0) + 1);
    const columns = Int32Array.from(often.keys()).sort();
    const present = this.settings.counts === "presence";
    const values = Float64Array.from(columns, (c) => (present ? 1 : often.get(c)));
    const place = new Map(Array.from(columns, (c, i) => [c, i]));
    const weight = (direction, c) => (c < 0 ? 0 : direction[place.get(c)] * (present ? 1 / often.get(c) : 1));
    return {
      features: { columns, values }, rows,
      // The attribution of each WL label, divided equally among its vertices.
      shares: (direction) => rows.map((row) => {
        const sums = [], sizes = [];
        row.groups.forEach((group, v) => {
          sums[group] = (sums[group] ?? 0) + weight(direction, row.columns[v]);
          sizes[group] = (sizes[group] ?? 0) + 1;
        });
        return { sums, sizes };
      }),
      contributions(direction) {
        const shares = new Float64Array(structure.n);
        this.shares(direction).forEach(({ sums, sizes }, t) => {
          rows[t].groups.forEach((group, v) => { shares[v] += sums[group] / sizes[group]; });
        });
        return shares;
      },
    };
  }
}

// ---------------------------------------------------------------------- pairs

const MOST_SOURCES = 1000, EXACT = 16; // vertices at which paths start; counts up to which each has its own feature

// The features of `n_pairs` pairs of one key, [[column, value], ...]: one for each level of the count.
function levelsOf(key, n_pairs, mask) {
  const found = [];
  for (let level = 1, before = 0; level <= n_pairs;) {
    found.push([Number(mix(cut(key + BigInt(found.length))) & mask), Math.sqrt(level - before)]);
    before = level;
    level += level < EXACT ? 1 : 2 ** Math.floor(Math.log2(level / EXACT) + 1);
  }
  return found;
}

// Counts of the pairs of vertices by their labels and their distance (src/kernels/pairs.hpp).
export class PairCounts extends LabelCounts {
  // Call visit(source, v, key, times) for each source and all vertices near to it; return the number of sources.
  search({ n, indptr, neighbors, directed }, labels, visit) {
    let sources = [...Array(n).keys()];
    if (n > MOST_SOURCES) {
      sources.sort((a, b) => (labels[a] < labels[b] ? -1 : Number(labels[a] > labels[b])));
      sources = Array.from({ length: MOST_SOURCES }, (_, i) => sources[Math.floor((i * n) / MOST_SOURCES)]);
    }
    for (const source of sources) {
      const distances = new Map([[source, 0]]);
      for (const [v, d] of distances) {
        const [a, b] = !directed && labels[source] > labels[v] ? [v, source] : [source, v];
        visit(source, v, mix(mix(labels[a] ^ mix(BigInt(d))) ^ mix(labels[b])), d === 0 || directed ? 2 : 1);
        if (d === this.settings.max_distance) continue;
        for (const u of neighbors.subarray(indptr[v], indptr[v + 1])) if (!distances.has(u)) distances.set(u, d + 1);
      }
    }
    return sources.length;
  }

  // Counts as a sparse row, and how a weighted sum of them is divided among the vertices: equally for pairs of a key.
  encode(graph, structure) {
    const { n } = structure, mask = BigInt(this.settings.mask), sums = new Map();
    const channels = channelsOf(graph, structure, { ...this.settings, n_iterations: 1 }).filter(({ rounds }) => rounds);
    const found = channels.map(({ first }) => {
      const visits = new Map(), kinds = new Map();
      const n_sources = this.search(structure, first, (s, v, key, times) => visits.set(key, (visits.get(key) ?? 0) + times));
      for (const [key, count] of visits) {
        const levels = levelsOf(key, Math.max(1, Math.floor((count * n) / (2 * n_sources) + 0.5)), mask);
        for (const [column, value] of levels) sums.set(column, (sums.get(column) ?? 0) + value);
        kinds.set(key, { count, levels });
      }
      return { first, kinds };
    });
    const columns = Int32Array.from(sums.keys()).sort(), place = new Map(Array.from(columns, (c, i) => [c, i]));
    const contributions = (direction) => {
      const shares = new Float64Array(n);
      for (const { first, kinds } of found) {
        for (const kind of kinds.values()) kind.each = kind.levels.reduce((sum, [c, value]) => sum + value * direction[place.get(c)], 0) / kind.count;
        this.search(structure, first, (s, v, key, times) => {
          for (const end of [s, v]) shares[end] += 0.5 * times * kinds.get(key).each;
        });
      }
      return shares;
    };
    return { features: { columns, values: Float64Array.from(columns, (c) => sums.get(c)) }, contributions };
  }
}
