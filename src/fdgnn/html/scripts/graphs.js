// Contents of the page: records as JSON, followed by arrays of numbers (fdgnn/html/playground.py).

const TYPES = {
  f8: Float64Array, i4: Int32Array, i2: Int16Array, i1: Int8Array,
  u8: BigUint64Array, u2: Uint16Array, u1: Uint8Array,
};

// Convert the unzipped bytes to {content, arrays}: arrays is a Map from names to {data, shape}.
export function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true), start = 8 + size;
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const arrays = new Map(Object.entries(header.arrays).map(([name, place]) => {
    const length = place.shape.reduce((a, b) => a * b, 1);
    return [name, { data: new TYPES[place.type](buffer, start + place.start, length), shape: place.shape }];
  }));
  return { content: header.content, arrays };
}

// Unpack the text of the page: base64 of gzip.
export async function unzip(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// Graphs of the page in the form that encoders and the editor use.
export const graphsOf = ({ graphs }) => graphs.list.map(({ edge_labels, features, answer = null, ...graph }) => (
  { ...graph, answer, directed: graphs.directed, edgeLabels: edge_labels, features: features && Float64Array.from(features) }));

// Properties that all graphs of the page share, and their labels.
export function kindOf({ directed, labels, n_features }) {
  const vertices = labels ? "labels" : n_features ? "features" : "nothing";
  return { directed, vertices, labels, n_inputs: labels ? labels.length : n_features ?? 1 };
}

// ---------------------------------------------------------------------- structure

// `graph` has n vertices, edges [[u, v], ...], and, or null, for each edge a weight or a label. In an
// undirected graph each edge is listed once. Rows and their entries ascend, as in Python.
export function structureOf(graph) {
  const { n, edges, weights = null, edgeLabels = null, directed = false } = graph;
  const arcs = [];
  edges.forEach(([u, v], e) => {
    arcs.push([v, u, e]);
    if (!directed && u !== v) arcs.push([u, v, e]);
  });
  arcs.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const indptr = new Int32Array(n + 1);
  for (const [v] of arcs) indptr[v + 1] += 1;
  for (let v = 0; v < n; v++) indptr[v + 1] += indptr[v];
  return {
    n, directed, indptr,
    neighbors: Int32Array.from(arcs, (arc) => arc[1]),
    weights: weights && Float64Array.from(arcs, (arc) => weights[arc[2]]),
    arcLabels: edgeLabels && arcs.map((arc) => edgeLabels[arc[2]]),
  };
}

// sums[v] = the sum of x over the neighbors of v; both are parts of larger arrays.
export function sumNeighbors({ n, indptr, neighbors, weights }, x, from, sums, to) {
  for (let v = 0; v < n; v++) {
    let total = 0;
    const end = indptr[v + 1];
    if (weights) for (let a = indptr[v]; a < end; a++) total += weights[a] * x[from + neighbors[a]];
    else for (let a = indptr[v]; a < end; a++) total += x[from + neighbors[a]];
    sums[to + v] = total;
  }
}

// An upper bound of rho(|A|): max_v (A x)_v / x_v for x <- (A + I) x, as in src/kernels/spectral.hpp.
export function spectralBound(structure) {
  const sizes = { ...structure, weights: structure.weights && structure.weights.map(Math.abs) }, y = new Float64Array(structure.n);
  let x = new Float64Array(structure.n).fill(1), bound = structure.n ? Infinity : 0;
  for (let step = 0; step < 500; step++) {
    sumNeighbors(sizes, x, 0, y, 0);
    if (step % 4 === 0) {
      const ratio = y.reduce((most, total, v) => Math.max(most, total / x[v]), 0), done = ratio > bound * (1 - 1e-3);
      bound = Math.min(bound, ratio);
      if (done) break;
    }
    const peak = x.reduce((most, value, v) => Math.max(most, value + y[v]), 0);
    x = x.map((value, v) => Math.max((value + y[v]) / peak, 1e-150));
  }
  return bound * (1 + 1e-12);
}
