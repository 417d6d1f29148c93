// The exact encoder: colors of 64 bits, refined round by round and counted (fdgnn/encoders/wl.py).
//
//     total(v)  = sum over arcs (u, v) of mix(mix(color(u)) ^ arc)
//     color'(v) = mix(color(v) ^ mix(total(v)))

import { mix, mixed } from "./bits.js";
import { arcBits, channelsOf } from "./channels.js";

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
