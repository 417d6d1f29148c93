// Graphs and small charts as SVG. In drawn graphs one unit is the length of an edge.

import { letters, shape } from "./elements.js";

const BESIDE = 0.16; // between the lines of a bond
const MOST_NAMES = 100; // vertices of a graph whose names are shown
const MOST_INSIDE = 2, MOST_BELOW = 12; // letters: a longer name stands below its vertex

// The visible area of a graph: all vertices with a margin, and at least `least`.
export function windowOf(vertices, room = 1.1, least = [6, 4]) {
  if (!vertices.length) return { x: -3, y: -2, width: 6, height: 4 };
  const [[x, width], [y, height]] = ["x", "y"].map((axis, k) => {
    const at = vertices.map((v) => v[axis]), low = Math.min(...at), high = Math.max(...at);
    const size = Math.max(least[k], high - low + 2 * room);
    return [(low + high - size) / 2, size];
  });
  return { x, y, width, height };
}

// `graph` has vertices {x, y}, edges {u, v} and directed. `view` has window, molecule (draw as one), nameOf(v) and, each
// optional: edgeNameOf(e), orderOf(e), besideOf(v) (hydrogens and charge of an atom), values (a number per vertex) and
// most (the largest), paint and inks (colors of vertices and of their names), inside (their names), titleOf(v),
// markOf(v) ({kind, r} instead of values), edgeKind(e), numbered, chosen {v} or {e}, from (where a new edge begins),
// pointer, lit and changed (sets of vertices), and editable.
export function draw(svg, graph, view) {
  const { x, y, width, height } = view.window, { vertices, edges } = graph;
  svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
  const kinds = { molecule: view.molecule, dense: edges.length > Math.min(3 * vertices.length, 500), marked: view.markOf };
  svg.setAttribute("class", ["graph", ...Object.keys(kinds).filter((kind) => kinds[kind])].join(" "));
  const names = ["edges", "halos", "vertices", "names", "marks", "hits"];
  const layers = Object.fromEntries(names.map((name) => [name, shape("g", { class: name })]));
  edges.forEach((edge, e) => drawEdge(layers, graph, edge, e, view));
  if (view.edgeKind) layers.edges.append(...layers.edges.querySelectorAll(".near")); // on top of pale edges
  const bonds = bondsAt(graph);
  vertices.forEach((vertex, v) => drawVertex(layers, graph, vertex, v, bonds[v], view));
  if (view.from !== undefined && view.pointer) {
    const { x: x1, y: y1 } = vertices[view.from];
    layers.marks.append(shape("line", { x1, y1, x2: view.pointer[0], y2: view.pointer[1], class: "preview" }));
  }
  svg.replaceChildren(...Object.values(layers));
}

// The degree of each vertex, and the direction away from its edges.
function bondsAt({ vertices, edges }) {
  const found = vertices.map(() => ({ degree: 0, x: 0, y: 0 }));
  const add = (v, u) => {
    const dx = vertices[v].x - vertices[u].x, dy = vertices[v].y - vertices[u].y, length = Math.hypot(dx, dy) || 1;
    found[v].degree += 1;
    found[v].x += dx / length;
    found[v].y += dy / length;
  };
  for (const { u, v } of edges) {
    add(u, v);
    add(v, u);
  }
  return found;
}

function drawEdge({ edges, hits }, graph, edge, e, view) {
  const a = graph.vertices[edge.u], b = graph.vertices[edge.v], name = view.edgeNameOf?.(e);
  const layer = view.edgeKind ? edges.appendChild(shape("g", { class: view.edgeKind(e) })) : edges;
  if (edge.u === edge.v) {
    layer.append(shape("circle", { cx: a.x + 0.28, cy: a.y - 0.28, r: 0.28, class: "loop" }));
    return;
  }
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const along = [(b.x - a.x) / length, (b.y - a.y) / length], side = [-along[1], along[0]];
  // A line beside the edge, `shift` to the side and shorter by `cut` at both ends.
  const line = (shift, kind, { cut = 0, to = layer } = {}) => to.appendChild(shape("line", {
    x1: a.x + shift * side[0] + cut * along[0], y1: a.y + shift * side[1] + cut * along[1],
    x2: b.x + shift * side[0] - cut * along[0], y2: b.y + shift * side[1] - cut * along[1], class: kind,
  }));
  if (view.chosen?.e === e) line(0, "chosen-edge");
  const order = view.molecule ? view.orderOf(e) : 1, inner = { cut: 0.16 };
  if (order === 2 && hangs(graph, edge)) [-BESIDE / 2, BESIDE / 2].forEach((shift) => line(shift, "bond"));
  else {
    line(0, "bond");
    if (order === 3) [-BESIDE, BESIDE].forEach((shift) => line(shift, "bond", inner));
    else if (order > 1) line(inward(graph, edge, a, b, side) * BESIDE, order === 2 ? "bond" : "bond aromatic", inner);
  }
  if (!view.molecule && name && graph.edges.length <= 60) {
    layer.append(shape("text", { x: (a.x + b.x) / 2 + 0.14 * side[0], y: (a.y + b.y) / 2 + 0.14 * side[1], class: "edge-name" }, short(name)));
  }
  if (graph.directed) {
    const tip = [b.x - 0.26 * along[0], b.y - 0.26 * along[1]];
    const wing = (s) => [tip[0] - 0.2 * along[0] + s * 0.1 * side[0], tip[1] - 0.2 * along[1] + s * 0.1 * side[1]];
    layer.append(shape("polygon", { points: [tip, wing(1), wing(-1)].join(" "), class: "arrow" }));
  }
  if (view.editable) line(0, "hit-edge", { to: hits }).dataset.edge = e;
}

// Return whether one end of an edge has no other neighbor; such a double bond is drawn as two equal lines.
const hangs = ({ edges }, { u, v }) => [u, v].some((end) => edges.filter((e) => e.u === end || e.v === end).length === 1);

// 1 if the other neighbors of an edge's ends, such as a ring, lie on the side that `side` points to, else -1.
function inward(graph, edge, a, b, side) {
  let sum = 0;
  for (const { u, v } of graph.edges) {
    const other = u === edge.u || u === edge.v ? v : v === edge.u || v === edge.v ? u : -1;
    if (other < 0 || other === edge.u || other === edge.v) continue;
    const { x, y } = graph.vertices[other];
    sum += (x - (a.x + b.x) / 2) * side[0] + (y - (a.y + b.y) / 2) * side[1];
  }
  return sum >= 0 ? 1 : -1;
}

const short = (text, most = 4) => {
  const whole = letters(text);
  return whole.length > most ? `${whole.slice(0, most - 1).join("")}…` : text;
};

function drawVertex({ halos, vertices, names, marks, hits }, graph, { x: cx, y: cy }, v, bonds, view) {
  const name = view.nameOf(v), beside = view.besideOf?.(v), { molecule } = view;
  const bare = molecule && name === "C" && !beside?.charge && bonds.degree > 0;
  const shown = name !== "" && !bare && graph.vertices.length <= MOST_NAMES;
  const value = view.values?.[v] ?? 0, strength = view.values ? Math.abs(value) / view.most : 0;
  const mark = view.markOf?.(v), paint = view.paint?.[v];
  const least = molecule ? (shown ? 0.22 : 0.13) : 0.2;
  const r = mark?.r ?? (paint ? 0.27 : least + (molecule ? 0.2 : 0.1) * strength);
  halos.append(shape("circle", { cx, cy, r: molecule && shown ? Math.max(r, 0.24) : r })); // edges end there
  const kind = mark?.kind ?? (paint ? "painted" : !view.values ? "plain" : value >= 0 ? "for" : "against");
  const dot = shape("circle", { cx, cy, r, class: `vertex ${kind}${shown ? " written" : ""}` });
  if (paint) dot.setAttribute("style", `fill: ${paint}; stroke: currentColor`);
  else if (view.values) dot.setAttribute("fill-opacity", (0.06 + 0.58 * strength).toFixed(2));
  if (molecule && ["plain", "pale"].includes(kind)) dot.setAttribute("visibility", "hidden"); // its bonds show it
  vertices.append(dot);
  const below = shown && !view.inside && !molecule && letters(name).length > MOST_INSIDE;
  const text = view.inside ? view.inside[v] : shown && !below ? short(name) : "";
  if (below) names.append(shape("text", { x: cx, y: cy + r + 0.16, class: "below" }, short(name, MOST_BELOW)));
  if (text) {
    const size = (molecule ? 0.4 : 0.34) / Math.sqrt(Math.max(1, letters(text).length / 1.5));
    const style = view.inks && { style: `fill: ${view.inks[v]}` };
    names.append(shape("text", { x: cx, y: cy, class: kind === "pale" ? "faint" : "", "font-size": size, ...style }, text));
    if (beside && !view.inside) drawBeside(names, [cx, cy], beside, Math.max(0.17 + 0.13 * (letters(text).length - 1), r + 0.04), bonds);
  }
  if (view.numbered) {
    const [dx, dy] = placeOfNumber(bonds, r + 0.2, text && beside?.hydrogens);
    names.append(shape("text", { x: cx + dx, y: cy + dy, class: "vertex-number" }, String(v)));
  }
  if (view.chosen?.v === v || view.from === v) marks.append(shape("circle", { cx, cy, r: 0.38, class: "chosen" }));
  if (view.lit?.has(v)) marks.append(shape("circle", { cx, cy, r: 0.36, class: "lit" }));
  if (view.changed?.has(v)) marks.append(shape("circle", { cx, cy, r: 0.44, class: "changed" }));
  const touched = view.editable ? hits.appendChild(shape("circle", { cx, cy, r: 0.42, class: "hit" })) : null;
  if (touched) touched.dataset.vertex = v;
  if (view.titleOf) for (const each of [dot, touched]) each?.append(shape("title", {}, view.titleOf(v)));
}

// Return whether hydrogens stand above or below an atom, because its bonds leave to both sides.
const upright = ({ degree, x, y }) => degree > 1 && Math.abs(x) < 0.5 * Math.abs(y);

// Hydrogens on the side away from an atom's bonds, and its charge on the right; `half` is half the width of the atom.
function drawBeside(names, [x, y], { hydrogens, charge }, half, bonds) {
  const put = (text, dx, dy, anchor) => text && names.append(
    shape("text", { x: x + dx, y: y + dy, "font-size": 0.36, style: `text-anchor: ${anchor}` }, text));
  if (upright(bonds)) put(hydrogens, 0, Math.sign(bonds.y) * (half + 0.19), "middle");
  else if (bonds.x < -0.1) put(hydrogens, -half, 0, "end");
  const left = upright(bonds) || bonds.x < -0.1;
  put(left ? charge : hydrogens + charge, half, 0, "start");
}

// The position of the number of a vertex: away from its edges and its hydrogens.
function placeOfNumber(bonds, far, hydrogens) {
  const { x, y } = bonds, length = Math.hypot(x, y);
  if (hydrogens) return upright(bonds) ? [far, Math.sign(y) * 0.12] : [0, y > 0 ? far : -far];
  return length > 0.1 ? [(far * x) / length, (far * y) / length] : [0.7 * far, -0.7 * far];
}

// ---------------------------------------------------------------------- small charts, in units of pixels

const WIDTH = 420, HEIGHT = 190, LEFT = 46, BOTTOM = 34, TOP = 22;

function frame(svg, words) {
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("class", "plot");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", words);
  svg.replaceChildren(
    shape("line", { x1: LEFT, y1: TOP, x2: LEFT, y2: HEIGHT - BOTTOM, class: "axis" }),
    shape("line", { x1: LEFT, y1: HEIGHT - BOTTOM, x2: WIDTH - 6, y2: HEIGHT - BOTTOM, class: "axis" }));
}

const text = (x, y, words, anchor = "middle") => shape("text", { x, y, "text-anchor": anchor }, words);

// Curves on a logarithmic scale: [{values, marked}], and a line at step `now` and at height `limit`.
export function curves(svg, all, { now = null, limit = null, across, up, words }) {
  frame(svg, words);
  const most = Math.max(2, ...all.map((c) => c.values.length));
  const logs = all.flatMap((c) => c.values).filter((v) => v > 0).map(Math.log10);
  const low = Math.floor(Math.min(...logs, limit ? Math.log10(limit) : 0)), high = Math.ceil(Math.max(...logs, low + 1));
  const x = (i) => LEFT + ((WIDTH - LEFT - 12) * i) / (most - 1);
  const y = (v) => TOP + ((HEIGHT - BOTTOM - TOP) * (high - Math.log10(Math.max(v, 10 ** low)))) / (high - low);
  for (const { values, marked } of [...all].sort((a, b) => a.marked - b.marked)) {
    const points = values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
    svg.append(shape("polyline", { points, class: `curve${marked ? "" : " other"}` }));
  }
  if (limit) svg.append(shape("line", { x1: LEFT, x2: WIDTH - 6, y1: y(limit), y2: y(limit), class: "limit" }));
  if (now !== null) svg.append(shape("line", { x1: x(now), x2: x(now), y1: TOP, y2: HEIGHT - BOTTOM, class: "now" }));
  for (let power = low; power <= high; power += Math.max(1, Math.ceil((high - low) / 4))) {
    svg.append(text(LEFT - 5, y(10 ** power) + 4, `1e${power}`, "end"));
  }
  svg.append(text(x(0), HEIGHT - BOTTOM + 15, "1"), text(x(most - 1), HEIGHT - BOTTOM + 15, String(most)));
  svg.append(text((LEFT + WIDTH) / 2, HEIGHT - 4, across), text(LEFT - 5, 10, up, "start"));
}

// Histogram: the number of values in each of `n` columns from 0 to `top`, with a line at 1.
export function histogram(svg, values, { across, words, n = 30 }) {
  frame(svg, words);
  const top = Math.max(1.25, Math.ceil(Math.max(...values) * 4) / 4), counts = new Array(n).fill(0);
  for (const value of values) counts[Math.min(n - 1, Math.floor((value / top) * n))] += 1;
  const most = Math.max(...counts, 1), wide = (WIDTH - LEFT - 12) / n;
  const x = (v) => LEFT + ((WIDTH - LEFT - 12) * v) / top;
  counts.forEach((count, i) => {
    const height = ((HEIGHT - BOTTOM - TOP - 6) * count) / most;
    const beyond = (i + 0.5) / n > 1 / top;
    svg.append(shape("rect", { x: LEFT + i * wide + 0.5, y: HEIGHT - BOTTOM - height, width: wide - 1, height, class: `column${beyond ? " beyond" : ""}` }));
  });
  svg.append(shape("line", { x1: x(1), x2: x(1), y1: TOP, y2: HEIGHT - BOTTOM, class: "limit" }));
  svg.append(text(x(1), HEIGHT - BOTTOM + 15, "1"), text(x(0), HEIGHT - BOTTOM + 15, "0"), text(x(top), HEIGHT - BOTTOM + 15, String(top)));
  svg.append(text(LEFT - 5, TOP + 8, String(most), "end"), text((LEFT + WIDTH) / 2, HEIGHT - 4, across), text(LEFT - 5, 10, "graphs", "start"));
}
