// First colors: what a vertex brings before its neighborhood is looked at (fdgnn/encoders/channels.py).

import { hashLabel, mixRow, wordsOf } from "./bits.js";

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
