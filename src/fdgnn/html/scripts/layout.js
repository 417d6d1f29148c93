// Graph layout: distances in the picture follow distances in the graph (stress majorization).

const MOST_OTHERS = 400; // vertices whose distances determine the positions in a component
const CLOSEST = 0.85; // least distance of most vertices to their nearest neighbors, in edge lengths
const SPARSE = 120; // vertices of a component that is started in several ways
const TURNS = [2.4, 1.1, 3.5, 0.6, 4.3, 1.9, 5.3, 2.9]; // of the spiral from which a component starts
const GAP = 1.6; // between components, in edge lengths

// Positions [[x, y], ...] with edges of about length 1, or longer where vertices would overlap.
export const place = (n, edges) => sideBySide(n, edges, placePart);

// The given positions, with components moved apart.
export const apart = (places, edges) => sideBySide(places.length, edges, (part) => part.map((v) => places[v]));

// Positions of all vertices, by `placed(part, near)` for each component. Components lie in rows, the largest first.
function sideBySide(n, edges, placed) {
  const near = Array.from({ length: n }, () => []);
  for (const [u, v] of edges) {
    if (u === v) continue;
    near[u].push(v);
    near[v].push(u);
  }
  const places = new Array(n), seen = new Array(n).fill(false), parts = [];
  for (let v = 0; v < n; v++) {
    if (seen[v]) continue;
    const part = [v];
    seen[v] = true;
    for (let i = 0; i < part.length; i++)
      for (const u of near[part[i]]) if (!seen[u]) {
        seen[u] = true;
        part.push(u);
      }
    parts.push({ part, ...boxOf(placed(part, near)) });
  }
  parts.sort((a, b) => b.part.length - a.part.length);
  const wide = Math.max(parts[0]?.width, 1.5 * Math.sqrt(parts.reduce((sum, { width, height }) => sum + (width + GAP) * (height + GAP), 0)));
  let left = 0, top = 0, row = 0;
  for (const { part, own, width, height } of parts) {
    if (left && left + width > wide) [left, top, row] = [0, top + row + GAP, 0];
    part.forEach((u, i) => { places[u] = [own[i][0] + left, own[i][1] + top]; });
    left += width + GAP;
    row = Math.max(row, height);
  }
  return places;
}

// Positions moved to the origin, and their extent.
function boxOf(at) {
  const [lows, highs] = [Math.min, Math.max].map((most) => [0, 1].map((k) => at.reduce((found, p) => most(found, p[k]), at[0][k])));
  return { own: at.map(([x, y]) => [x - lows[0], y - lows[1]]), width: highs[0] - lows[0], height: highs[1] - lows[1] };
}

// Steps from vertex `start` to all others; `near` are lists of neighbors.
function distancesFrom(start, near) {
  const found = new Int32Array(near.length).fill(-1), queue = [start];
  found[start] = 0;
  for (const v of queue)
    for (const u of near[v]) if (found[u] < 0) {
      found[u] = found[v] + 1;
      queue.push(u);
    }
  return found;
}

// One connected component. With few edges, it is started in several ways until no two edges cross: from a wrong start,
// rings stay folded onto each other.
function placePart(part, all) {
  const n = part.length;
  if (n === 1) return [[0, 0]];
  const number = new Map(part.map((v, i) => [v, i])), near = part.map((v) => all[v].map((u) => number.get(u)));
  const edges = near.flatMap((own, i) => own.flatMap((j) => (j < i ? [[i, j]] : [])));
  const others = part.flatMap((_, i) => (i % Math.ceil(n / MOST_OTHERS) ? [] : [i]));
  const wanted = others.map((j) => distancesFrom(j, near));
  let best = null, fewest = Infinity;
  for (const turn of n <= SPARSE && edges.length <= 1.5 * n ? TURNS : TURNS.slice(0, 1)) {
    const at = settled(part.map((_, i) => [Math.cos(turn * i), Math.sin(turn * i)].map((x) => x * Math.sqrt(i + 1) * 0.6)), others, wanted);
    const found = crossings(at, edges, fewest);
    if (found < fewest) [best, fewest] = [at, found];
    if (!fewest) break;
  }
  return spread(lying(best));
}

// Iterate weighted averages of the positions that fit the distances (in a large component, those to some vertices).
function settled(at, others, wanted) {
  const rounds = Math.max(30, Math.min(400, Math.floor(4e6 / (at.length * others.length))));
  for (let round = 0; round < rounds; round++) {
    at = at.map((p, i) => {
      let x = 0, y = 0, total = 0;
      for (let k = 0; k < others.length; k++) {
        const j = others[k], far = wanted[k][i], q = at[j];
        if (j === i) continue;
        const weight = 1 / (far * far), dx = p[0] - q[0], dy = p[1] - q[1];
        const pull = far / (Math.sqrt(dx * dx + dy * dy) || 1e-6);
        x += weight * (q[0] + pull * dx);
        y += weight * (q[1] + pull * dy);
        total += weight;
      }
      return total ? [x / total, y / total] : p;
    });
  }
  return at;
}

// The number of pairs of edges that cross each other; counting ends at `enough`.
function crossings(at, edges, enough) {
  const side = (a, b, c) => Math.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
  const between = ([a, b], [c, d]) => side(at[a], at[b], at[c]) * side(at[a], at[b], at[d]) < 0;
  let found = 0;
  for (let i = 0; i < edges.length && found < enough; i++)
    for (let j = 0; j < i; j++) if (between(edges[i], edges[j]) && between(edges[j], edges[i])) found += 1;
  return found;
}

// Turn a component so that its longest direction is horizontal.
function lying(at) {
  const mean = [0, 1].map((k) => at.reduce((sum, p) => sum + p[k], 0) / at.length);
  const moment = (a, b) => at.reduce((sum, p) => sum + (p[a] - mean[a]) * (p[b] - mean[b]), 0);
  const angle = 0.5 * Math.atan2(2 * moment(0, 1), moment(0, 0) - moment(1, 1));
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return at.map(([x, y]) => [c * (x - mean[0]) + s * (y - mean[1]), c * (y - mean[1]) - s * (x - mean[0])]);
}

// Enlarge a component if most of its vertices are too close to their nearest neighbor.
function spread(at) {
  const nearest = at.map(([x, y], i) => {
    let least = Infinity;
    for (let j = 0; j < at.length; j++) {
      const dx = x - at[j][0], dy = y - at[j][1], square = dx * dx + dy * dy;
      if (j !== i && square < least) least = square;
    }
    return Math.sqrt(least);
  });
  const usual = nearest.sort((a, b) => a - b)[nearest.length >> 1];
  const factor = Math.min(8, Math.max(1, CLOSEST / (usual || 1)));
  return at.map(([x, y]) => [factor * x, factor * y]);
}

// A position near vertex v that is far from the others.
export function freePlace(vertices, v) {
  const { x, y } = vertices[v];
  let best = [x + 1, y], most = -1;
  for (let i = 0; i < 24; i++) {
    const p = [x + Math.cos((i * Math.PI) / 12), y + Math.sin((i * Math.PI) / 12)];
    const least = Math.min(...vertices.map((w, u) => (u === v ? 9 : Math.hypot(w.x - p[0], w.y - p[1]))));
    if (least > most + 1e-9) [best, most] = [p, least];
  }
  return best;
}
