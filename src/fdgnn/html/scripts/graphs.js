// What the page holds: records as JSON, and arrays of numbers after them (fdgnn/html/playground/models.py).

const TYPES = {
  f8: Float64Array, i4: Int32Array, i2: Int16Array, i1: Int8Array,
  u8: BigUint64Array, u2: Uint16Array, u1: Uint8Array,
};

// From the bytes, unzipped, to {content, arrays}: arrays is a Map from names to {data, shape}.
export function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true), start = 8 + size;
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, size)));
  const arrays = new Map(Object.entries(header.arrays).map(([name, place]) => {
    const length = place.shape.reduce((a, b) => a * b, 1);
    return [name, { data: new TYPES[place.type](buffer, start + place.start, length), shape: place.shape }];
  }));
  return { content: header.content, arrays };
}

// The text of the page: base64 of gzip.
export async function unzip(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

// The graphs of the page as encoders and the editor take them.
export const graphsOf = ({ graphs }) => graphs.list.map(({ edge_labels, features, answer = null, ...graph }) => (
  { ...graph, answer, directed: graphs.directed, edgeLabels: edge_labels, features: features && Float64Array.from(features) }));

// What the graphs of the page have in common, and the labels they have.
export function kindOf({ directed, labels, n_features }) {
  const vertices = labels ? "labels" : n_features ? "features" : "nothing";
  return { directed, vertices, labels, n_inputs: labels ? labels.length : n_features ?? 1 };
}

// ---------------------------------------------------------------------- structure

// A graph as the encoders read it: for each vertex the vertices whose states flow into it.

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

// Vertices that look alike have equal states, so it is enough to follow one of each kind: the smaller graph of kinds,
// with `sizes`, how many vertices are of each, and `ones`, one of them. `first` is what each vertex brings.
export function quotientOf(structure, first) {
  const { indptr, neighbors, weights } = structure, kinds = kindsOf(structure, first), ones = [], sizes = [];
  kinds.forEach((kind, v) => {
    if (kind === ones.length) ones.push(v);
    sizes[kind] = (sizes[kind] ?? 0) + 1;
  });
  const starts = [0], near = [], counts = [];
  for (const v of ones) {
    const found = new Map(); // kinds of its neighbors, with the sums of their weights
    for (let a = indptr[v]; a < indptr[v + 1]; a++) {
      const kind = kinds[neighbors[a]];
      found.set(kind, (found.get(kind) ?? 0) + (weights ? weights[a] : 1));
    }
    near.push(...found.keys());
    counts.push(...found.values());
    starts.push(near.length);
  }
  return { n: ones.length, indptr: starts, neighbors: near, weights: counts, sizes, ones };
}

// Color refinement: the kind of each vertex, kinds numbered as they appear.
function kindsOf({ n, indptr, neighbors, weights }, first) {
  const numbered = (keys) => {
    const known = new Map();
    const found = keys.map((key) => known.get(key) ?? (known.set(key, known.size), known.size - 1));
    return { found, count: known.size };
  };
  let now = numbered(first);
  for (;;) {
    const kinds = now.found;
    const next = numbered(kinds.map((kind, v) => {
      const near = [];
      for (let a = indptr[v]; a < indptr[v + 1]; a++) near.push(weights ? `${kinds[neighbors[a]]} ${weights[a]}` : kinds[neighbors[a]]);
      return `${kind}: ${near.sort()}`;
    }));
    if (next.count === now.count) return kinds;
    now = next;
  }
}

// Several graphs as one; vertex v of graph g becomes starts[g] + v.
export function union(structures) {
  const starts = new Int32Array(structures.length + 1);
  structures.forEach((s, g) => { starts[g + 1] = starts[g] + s.n; });
  const n_arcs = structures.reduce((sum, s) => sum + s.neighbors.length, 0);
  const indptr = new Int32Array(starts[structures.length] + 1), neighbors = new Int32Array(n_arcs);
  const weighted = structures.some((s) => s.weights);
  const weights = weighted ? new Float64Array(n_arcs) : null;
  let arc = 0;
  structures.forEach((s, g) => {
    for (let v = 0; v < s.n; v++) indptr[starts[g] + v + 1] = arc + s.indptr[v + 1];
    for (let a = 0; a < s.neighbors.length; a++) {
      neighbors[arc + a] = starts[g] + s.neighbors[a];
      if (weighted) weights[arc + a] = s.weights ? s.weights[a] : 1;
    }
    arc += s.neighbors.length;
  });
  return { n: starts[structures.length], directed: structures[0].directed, indptr, neighbors, weights, starts };
}

// sums[v] = the sum of x over the neighbors of v; both begin at places of larger arrays.
export function sumNeighbors({ n, indptr, neighbors, weights }, x, from, sums, to) {
  for (let v = 0; v < n; v++) {
    let total = 0;
    const end = indptr[v + 1];
    if (weights) for (let a = indptr[v]; a < end; a++) total += weights[a] * x[from + neighbors[a]];
    else for (let a = indptr[v]; a < end; a++) total += x[from + neighbors[a]];
    sums[to + v] = total;
  }
}

// An upper bound of rho(|A|): max_v (A x)_v / x_v for x <- (A + I) x, as src/kernels/spectral.hpp has it.
export function spectralBound({ n, indptr, neighbors, weights }) {
  if (n === 0) return 0;
  const size = (a) => (weights ? Math.abs(weights[a]) : 1);
  let scale = 0;
  for (let v = 0; v < n; v++) {
    let total = 0;
    for (let a = indptr[v]; a < indptr[v + 1]; a++) total += size(a);
    scale = Math.max(scale, total);
  }
  scale += 1;
  let x = new Float64Array(n).fill(1), y = new Float64Array(n), bound = Infinity;
  for (let step = 0; step < 500; step++) {
    const checked = step % 4 === 0;
    let ratio = 0;
    for (let v = 0; v < n; v++) {
      let total = 0;
      for (let a = indptr[v]; a < indptr[v + 1]; a++) total += x[neighbors[a]] * size(a);
      if (checked) ratio = Math.max(ratio, total / x[v]);
      y[v] = (total + x[v]) / scale;
    }
    [x, y] = [y, x];
    if (!checked) continue;
    const done = ratio > bound * (1 - 1e-3);
    bound = Math.min(bound, ratio);
    if (done) break;
    const peak = x.reduce((a, b) => Math.max(a, b));
    for (let v = 0; v < n; v++) x[v] = Math.max(x[v] / peak, 1e-150);
  }
  return bound * (1 + 1e-12);
}

// The largest neighborhood of a graph: the sum of the sizes of the weights of its arcs.
export function largestDegree({ n, indptr, weights }) {
  let largest = 0;
  for (let v = 0; v < n; v++) {
    let total = indptr[v + 1] - indptr[v];
    if (weights) {
      total = 0;
      for (let a = indptr[v]; a < indptr[v + 1]; a++) total += Math.abs(weights[a]);
    }
    largest = Math.max(largest, total);
  }
  return largest;
}
