// Where vertices lie: distances on the picture follow distances in the graph (stress majorization).

const CLOSEST = 0.85; // of most vertices to their nearest neighbors, in lengths of an edge
const GAP = 1.6; // between parts that are not connected, in lengths of an edge

// Places [[x, y], ...] with edges of about length 1, or longer where vertices would lie upon each other.
export function place(n, edges) {
  const near = Array.from({ length: n }, () => []);
  for (const [u, v] of edges) {
    if (u === v) continue;
    near[u].push(v);
    near[v].push(u);
  }
  const places = new Array(n), seen = new Array(n).fill(false);
  let left = 0;
  for (let v = 0; v < n; v++) {
    if (seen[v]) continue;
    const part = [v];
    seen[v] = true;
    for (let i = 0; i < part.length; i++)
      for (const u of near[part[i]]) if (!seen[u]) {
        seen[u] = true;
        part.push(u);
      }
    const own = placePart(part, near);
    const low = Math.min(...own.map((p) => p[0])), high = Math.max(...own.map((p) => p[0]));
    part.forEach((u, i) => { places[u] = [own[i][0] - low + left, own[i][1]]; });
    left += high - low + GAP;
  }
  return places;
}

function distances(part, near) {
  const number = new Map(part.map((v, i) => [v, i]));
  return part.map((start) => {
    const found = new Float64Array(part.length).fill(-1), queue = [start];
    found[number.get(start)] = 0;
    for (const v of queue)
      for (const u of near[v]) {
        const i = number.get(u);
        if (found[i] < 0) {
          found[i] = found[number.get(v)] + 1;
          queue.push(u);
        }
      }
    return found;
  });
}

// One connected part, by repeated averages of where each vertex's distances to the others want it.
function placePart(part, near) {
  const n = part.length;
  if (n === 1) return [[0, 0]];
  const wanted = distances(part, near);
  let at = part.map((_, i) => [Math.cos(2.4 * i) * Math.sqrt(i + 1) * 0.6, Math.sin(2.4 * i) * Math.sqrt(i + 1) * 0.6]);
  const rounds = Math.max(30, Math.min(400, Math.floor(4e6 / (n * n))));
  for (let round = 0; round < rounds; round++) {
    at = at.map((p, i) => {
      let x = 0, y = 0, total = 0;
      for (let j = 0; j < n; j++) {
        if (j === i) continue;
        const weight = 1 / wanted[i][j] ** 2, dx = p[0] - at[j][0], dy = p[1] - at[j][1];
        const pull = wanted[i][j] / (Math.hypot(dx, dy) || 1e-6);
        x += weight * (at[j][0] + pull * dx);
        y += weight * (at[j][1] + pull * dy);
        total += weight;
      }
      return [x / total, y / total];
    });
  }
  return spread(lying(at));
}

// Turn a part so that its longest direction is from left to right.
function lying(at) {
  const mean = [0, 1].map((k) => at.reduce((sum, p) => sum + p[k], 0) / at.length);
  const moment = (a, b) => at.reduce((sum, p) => sum + (p[a] - mean[a]) * (p[b] - mean[b]), 0);
  const angle = 0.5 * Math.atan2(2 * moment(0, 1), moment(0, 0) - moment(1, 1));
  const [c, s] = [Math.cos(angle), Math.sin(angle)];
  return at.map(([x, y]) => [c * (x - mean[0]) + s * (y - mean[1]), c * (y - mean[1]) - s * (x - mean[0])]);
}

// Make a part larger if most of its vertices are too close to their nearest neighbor to be told apart.
function spread(at) {
  const nearest = at.map((p, i) => at.reduce((least, q, j) => (j === i ? least : Math.min(least, Math.hypot(p[0] - q[0], p[1] - q[1]))), Infinity));
  const usual = nearest.sort((a, b) => a - b)[nearest.length >> 1];
  const factor = Math.min(8, Math.max(1, CLOSEST / (usual || 1)));
  return at.map(([x, y]) => [factor * x, factor * y]);
}

// A place beside vertex v that is far from the others.
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
