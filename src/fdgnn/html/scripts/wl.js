// First colors: what a vertex brings before its neighborhood is looked at (fdgnn/encoders/channels.py).

import { hashLabel, mix, mixed, mixRow, wordsOf } from "./hashing.js";

const COARSE = 4; // bins of a feature that are refined

// Powers of the root of two: numbers 1 + x fall into two bins each time that they double.
const EDGES = [];
for (let i = 0; i < 64; i++) EDGES.push(Math.SQRT2 * 2 ** i, 2 ** (i + 1));
EDGES.sort((a, b) => a - b);

// How many ascending edges are at most the value, or below it.
const atMost = (edges, value) => edges.reduce((count, edge) => count + (edge <= value), 0);
const below = (edges, value) => edges.reduce((count, edge) => count + (edge < value), 0);

export const logBin = (value) => atMost(EDGES, 1 + value);

// Colors of whole numbers, or of rows of them, that no other name gives: [[high, low], ...].
export function hashed(rows, name) {
  const salt = hashLabel(name);
  return rows.map((row) => mixRow([salt, ...[row].flat().map(wordsOf)]));
}

export const degreesOf = ({ n, indptr }) => Array.from({ length: n }, (_, v) => indptr[v + 1] - indptr[v]);

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

// Fine bins are counted, coarse ones refined: rows of them if few, else one by one.
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

// The channels of a graph: name, first colors [[high, low], ...] and how often they are refined.
export function channelsOf(graph, structure, settings) {
  const { first, n_iterations } = settings, found = [];
  if (first === "labels") found.push({ name: "label", first: graph.labels.map(hashLabel), rounds: n_iterations });
  else if (first === "features") found.push(...featureChannels(graph, settings));
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

// What each arc carries, [[high, low], ...], or null where that is nothing. A graph without arcs has no labels of them.
export function arcBits({ arcLabels, weights }, { labeledArcs, weightedArcs, weightEdges }) {
  const labels = labeledArcs ? (arcLabels ?? []).map(hashLabel) : null;
  if (!weightedArcs) return labels;
  const levels = Array.from(weights ?? [], (w) => (weightEdges ? below(weightEdges, w) : roundToEven(w)));
  const carried = hashed(levels, "weight");
  return labels ? carried.map(([h, l], a) => [(h ^ labels[a][0]) >>> 0, (l ^ labels[a][1]) >>> 0]) : carried;
}

function roundToEven(value) {
  const near = Math.round(value);
  return Math.abs(value - Math.trunc(value)) === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

// ---------------------------------------------------------------------- colors

// The exact encoder: colors of 64 bits, refined round by round and counted (fdgnn/encoders/wl.py).
//
//     total(v)  = sum over arcs (u, v) of mix(mix(color(u)) ^ arc)
//     color'(v) = mix(color(v) ^ mix(total(v)))


const OUTWARD = [0xd1b54a32, 0xd192ed03]; // tells arcs that leave a vertex from those that enter

// One round: colors (high, low), each of n words, to the next ones.
function refine({ n, indptr, neighbors, directed }, bits, [high, low]) {
  const mh = new Uint32Array(n), ml = new Uint32Array(n), nh = new Uint32Array(n), nl = new Uint32Array(n);
  const oh = new Uint32Array(directed ? n : 0), ol = new Uint32Array(directed ? n : 0);
  for (let v = 0; v < n; v++) {
    mix(high[v], low[v]);
    mh[v] = mixed[0];
    ml[v] = mixed[1];
  }
  for (let v = 0; v < n; v++) {
    let th = 0, tl = 0;
    for (let a = indptr[v]; a < indptr[v + 1]; a++) {
      const u = neighbors[a], bh = bits ? bits[a][0] : 0, bl = bits ? bits[a][1] : 0;
      let h = mh[u], l = ml[u];
      if (bits) {
        mix((h ^ bh) >>> 0, (l ^ bl) >>> 0);
        h = mixed[0];
        l = mixed[1];
      }
      tl += l;
      th = (th + h + (tl > 0xffffffff ? 1 : 0)) >>> 0;
      tl >>>= 0;
      if (directed) {
        mix((mh[v] ^ bh ^ OUTWARD[0]) >>> 0, (ml[v] ^ bl ^ OUTWARD[1]) >>> 0);
        const sum = ol[u] + mixed[1];
        oh[u] += mixed[0] + (sum > 0xffffffff ? 1 : 0);
        ol[u] = sum;
      }
    }
    mix(th, tl);
    mix((high[v] ^ mixed[0]) >>> 0, (low[v] ^ mixed[1]) >>> 0);
    nh[v] = mixed[0];
    nl[v] = mixed[1];
  }
  for (let v = 0; v < oh.length; v++) {
    mix((nh[v] ^ oh[v]) >>> 0, (nl[v] ^ ol[v]) >>> 0);
    nh[v] = mixed[0];
    nl[v] = mixed[1];
  }
  return [nh, nl];
}

// Which vertices have the same color: the number of each vertex's group, in order of first appearance.
export function groupsOf([high, low]) {
  const numbers = new Map();
  return Int32Array.from(high, (h, v) => {
    const key = `${h},${low[v]}`;
    if (!numbers.has(key)) numbers.set(key, numbers.size);
    return numbers.get(key);
  });
}

export class WLCounts {
  // `settings`: first, histograms, n_iterations, counts, mask or columns, labeledArcs, weightedArcs, and edges.
  constructor(settings) {
    this.kind = "wl";
    this.settings = settings;
    this.n_features = settings.n_features;
  }

  // Vertex labels that no training graph has.
  unseen(graph) {
    const { vocabulary } = this.settings;
    if (!vocabulary || !graph.labels) return [];
    return [...new Set(graph.labels.filter((label) => !vocabulary.has(label)))];
  }

  // Edge labels that no training graph has, where the model knows which these have.
  unseenEdges(graph) {
    const { arcVocabulary, labeledArcs } = this.settings;
    if (!labeledArcs || !arcVocabulary || !graph.edgeLabels) return [];
    return graph.edgeLabels.filter((label) => !arcVocabulary.has(label));
  }

  // Those that are refused.
  refused(graph) {
    return this.settings.takesUnseen ? [] : this.unseen(graph);
  }

  // Colors by channel and round: [{channel, round, colors: [high, low], groups}, ...].
  rows(graph, structure) {
    const bits = arcBits(structure, this.settings), found = [];
    for (const { name, first, rounds } of channelsOf(graph, structure, this.settings)) {
      let colors = [Uint32Array.from(first, (word) => word[0]), Uint32Array.from(first, (word) => word[1])];
      for (let round = 0; round <= rounds; round++) {
        if (round) colors = refine(structure, bits, colors);
        found.push({ channel: name, round, colors, groups: groupsOf(colors) });
      }
    }
    return found;
  }

  // The column of each vertex's feature: "there are more than this number of vertices of this color".
  columnsOf({ colors: [high, low], groups }) {
    const { counts, mask, columns } = this.settings, seen = new Map();
    return Int32Array.from(groups, (group, v) => {
      const number = counts === "thermometer" ? (seen.get(group) ?? 0) : 0;
      seen.set(group, number + 1);
      const sum = low[v] + number;
      mix((high[v] + (sum > 0xffffffff ? 1 : 0)) >>> 0, sum >>> 0);
      if (columns) return columns.get(`${mixed[0]},${mixed[1]}`) ?? -1;
      return mixed[1] & mask;
    });
  }

  // Counts as a sparse row, and how a weighted sum of them is shared by the vertices.
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
      // What the vertices of each color add together: a color's weights are shared equally by them.
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
