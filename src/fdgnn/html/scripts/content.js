// What the page holds: records as JSON, and arrays of numbers after them (fdgnn/html/playground/packing.py).

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

// The graphs of the page, one by one, as encoders and the editor take them.
export function graphsOf({ graphs }, arrays) {
  const get = (name) => arrays.get(`graphs.${name}`)?.data;
  const sizes = get("sizes"), n_edges = get("n_edges");
  const [sources, ends, labels, edgeLabels] = ["sources", "ends", "labels", "edge_labels"].map(get);
  const weights = get("weights"), features = get("features"), answers = get("answers");
  let v = 0, e = 0;
  return Array.from(sizes, (n, g) => {
    const m = n_edges[g];
    const vertices = [v, (v += n)], arcs = [e, (e += m)];
    return {
      n, id: graphs.ids[g], directed: graphs.directed,
      edges: Array.from({ length: m }, (_, i) => [sources[arcs[0] + i], ends[arcs[0] + i]]),
      labels: labels ? Array.from(labels.subarray(...vertices), (code) => graphs.labels[code]) : null,
      edgeLabels: edgeLabels ? Array.from(edgeLabels.subarray(...arcs), (code) => graphs.edge_labels[code]) : null,
      weights: weights ? weights.slice(...arcs) : null,
      features: features ? features.slice(vertices[0] * graphs.n_features, vertices[1] * graphs.n_features) : null,
      answer: answers ? answers[g] : null,
      first: vertices[0],
    };
  });
}

// What the graphs of the page have in common, and the labels they have.
export function kindOf({ directed, labels, n_features }) {
  const vertices = labels ? "labels" : n_features ? "features" : "nothing";
  return { directed, vertices, labels, n_inputs: labels ? labels.length : n_features ?? 1 };
}
