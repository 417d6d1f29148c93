// A sketch as SVG. One unit is the length of an edge.

import { letters, shape } from "./elements.js";
import { BOND_ORDERS } from "./molecules.js";

const BESIDE = 0.16; // between the lines of a bond

// The window onto the graph: all vertices with some room, and no fewer than a few units wide.
export function windowOf(vertices, room = 0.9) {
  const xs = vertices.map((v) => v.x), ys = vertices.map((v) => v.y);
  if (!vertices.length) return { x: -3, y: -2, width: 6, height: 4 };
  const center = [(Math.min(...xs) + Math.max(...xs)) / 2, (Math.min(...ys) + Math.max(...ys)) / 2];
  const width = Math.max(6, Math.max(...xs) - Math.min(...xs) + 2 * room);
  const height = Math.max(4, Math.max(...ys) - Math.min(...ys) + 2 * room);
  return { x: center[0] - width / 2, y: center[1] - height / 2, width, height };
}

// `view`: window, molecule (draw as one), nameOf(v), edgeNameOf(e), and, each optional: values (a number per
// vertex), paint and inks (colors of vertices and of what is shown on them), chosen {v} or {e}, from (a vertex an edge begins at), pointer, lit and changed vertices.
export function draw(svg, sketch, view) {
  const { x, y, width, height } = view.window;
  svg.setAttribute("viewBox", `${x} ${y} ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
  svg.setAttribute("class", `graph${view.molecule ? " molecule" : ""}${sketch.edges.length > Math.min(3 * sketch.vertices.length, 500) ? " dense" : ""}`);
  const layers = ["edges", "halos", "vertices", "names", "marks", "hits"].map((name) => shape("g", { class: name }));
  const [edges, halos, dots, names, marks, hits] = layers;
  sketch.edges.forEach((edge, e) => drawEdge(edges, hits, sketch, edge, e, view));
  sketch.vertices.forEach((vertex, v) => drawVertex({ halos, dots, names, marks, hits }, sketch, vertex, v, view));
  if (view.from !== undefined && view.pointer) {
    const { x: x1, y: y1 } = sketch.vertices[view.from];
    marks.append(shape("line", { x1, y1, x2: view.pointer[0], y2: view.pointer[1], class: "preview" }));
  }
  svg.replaceChildren(...layers);
}

export const orderOf = (edge, name) => edge.order ?? BOND_ORDERS.get(name) ?? 1;

function drawEdge(layer, hits, sketch, edge, e, view) {
  const a = sketch.vertices[edge.u], b = sketch.vertices[edge.v], name = view.edgeNameOf(e);
  if (edge.u === edge.v) {
    layer.append(shape("circle", { cx: a.x + 0.28, cy: a.y - 0.28, r: 0.28, class: "loop" }));
    return;
  }
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const along = [(b.x - a.x) / length, (b.y - a.y) / length], side = [-along[1], along[0]];
  // A line beside the edge, `shift` to the side and shorter by `cut` at both ends.
  const line = (shift, kind, { cut = 0, to = layer } = {}) => to.append(shape("line", {
    x1: a.x + shift * side[0] + cut * along[0], y1: a.y + shift * side[1] + cut * along[1],
    x2: b.x + shift * side[0] - cut * along[0], y2: b.y + shift * side[1] - cut * along[1], class: kind,
  }));
  if (view.chosen?.e === e) line(0, "chosen-edge");
  const order = view.molecule ? orderOf(edge, name) : 1, inner = { cut: 0.16 };
  if (order === 2 && hangs(sketch, edge)) [-BESIDE / 2, BESIDE / 2].forEach((shift) => line(shift, "bond"));
  else {
    line(0, "bond");
    if (order === 3) [-BESIDE, BESIDE].forEach((shift) => line(shift, "bond", inner));
    else if (order > 1) line(inward(sketch, edge, a, b, side) * BESIDE, order === 2 ? "bond" : "bond aromatic", inner);
  }
  if (!view.molecule && name && sketch.edges.length <= 60) {
    layer.append(shape("text", { x: (a.x + b.x) / 2 + 0.14 * side[0], y: (a.y + b.y) / 2 + 0.14 * side[1], class: "edge-name" }, short(name)));
  }
  if (sketch.directed) {
    const tip = [b.x - 0.26 * along[0], b.y - 0.26 * along[1]];
    const wing = (s) => [tip[0] - 0.2 * along[0] + s * 0.1 * side[0], tip[1] - 0.2 * along[1] + s * 0.1 * side[1]];
    layer.append(shape("polygon", { points: [tip, wing(1), wing(-1)].join(" "), class: "arrow" }));
  }
  if (view.editable) {
    line(0, "hit-edge", { to: hits });
    hits.lastChild.dataset.edge = e;
  }
}

// Whether nothing else hangs on one of the edge's ends: such a double bond is drawn as two equal lines.
const hangs = ({ edges }, { u, v }) => [u, v].some((end) => edges.filter((e) => e.u === end || e.v === end).length === 1);

// 1 if the other neighbors of an edge's ends lie on the side that `side` points to, else -1: a ring is there.
function inward(sketch, edge, a, b, side) {
  let sum = 0;
  for (const { u, v } of sketch.edges) {
    const other = u === edge.u || u === edge.v ? v : v === edge.u || v === edge.v ? u : -1;
    if (other < 0 || other === edge.u || other === edge.v) continue;
    const { x, y } = sketch.vertices[other];
    sum += (x - (a.x + b.x) / 2) * side[0] + (y - (a.y + b.y) / 2) * side[1];
  }
  return sum >= 0 ? 1 : -1;
}

const short = (text, most = 4) => {
  const whole = letters(text);
  return whole.length > most ? `${whole.slice(0, most - 1).join("")}…` : text;
};

// A name that is too long for its vertex stands below it.
const MOST_INSIDE = 2, MOST_BELOW = 12;

function drawVertex({ halos, dots, names, marks, hits }, sketch, vertex, v, view) {
  const { x: cx, y: cy } = vertex, name = view.nameOf(v);
  const bare = view.molecule && name === "C" && sketch.edges.some((e) => e.u === v || e.v === v);
  const shown = name !== "" && !bare && sketch.vertices.length <= 150;
  const value = view.values?.[v] ?? 0, strength = view.values ? Math.abs(value) / view.most : 0;
  const least = view.molecule ? (shown ? 0.22 : 0.13) : 0.2, paint = view.paint?.[v];
  const r = paint ? 0.27 : least + (view.molecule ? 0.2 : 0.1) * strength;
  halos.append(shape("circle", { cx, cy, r: view.molecule && shown ? Math.max(r, 0.24) : r })); // edges end there
  const dot = shape("circle", { cx, cy, r, class: `vertex ${paint ? "painted" : !view.values ? "plain" : value >= 0 ? "for" : "against"}` });
  if (paint) dot.setAttribute("style", `fill: ${paint}; stroke: currentColor`);
  else if (view.values) dot.setAttribute("fill-opacity", (0.06 + 0.58 * strength).toFixed(2));
  if (view.titleOf) dot.append(shape("title", {}, view.titleOf(v)));
  dots.append(dot);
  const below = shown && !view.inside && !view.molecule && letters(name).length > MOST_INSIDE;
  const text = view.inside ? view.inside[v] : shown && !below ? short(name) : "";
  if (below) {
    names.append(shape("text", { x: cx, y: cy + r + 0.16, class: "below" }, short(name, MOST_BELOW)));
  }
  if (text) {
    const size = (view.molecule ? 0.4 : 0.34) / Math.sqrt(Math.max(1, letters(text).length / 1.5));
    names.append(shape("text", { x: cx, y: cy, "font-size": size, ...(view.inks && { style: `fill: ${view.inks[v]}` }) }, text));
  }
  if (view.chosen?.v === v || view.from === v) marks.append(shape("circle", { cx, cy, r: 0.38, class: "chosen" }));
  if (view.lit?.has(v)) marks.append(shape("circle", { cx, cy, r: 0.36, class: "lit" }));
  if (view.changed?.has(v)) marks.append(shape("circle", { cx, cy, r: 0.44, class: "changed" }));
  if (view.editable) {
    const hit = shape("circle", { cx, cy, r: 0.42, class: "hit" });
    hit.dataset.vertex = v;
    if (view.titleOf) hit.append(shape("title", {}, view.titleOf(v)));
    hits.append(hit);
  }
}

// ---------------------------------------------------------------------- plots

// Small charts as SVG, in units of pixels.


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

const text = (x, y, words, anchor = "middle") => {
  const made = shape("text", { x, y, "text-anchor": anchor }, words);
  return made;
};

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

// How many values fall into each of `n` columns from 0 to `top`, with a line at 1.
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

// Columns of numbers between −1 and 1 as colors; `color` gives red, green, blue of a number.
export function heat(canvas, rows, columns, value, color) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; c++) image.data.set([...color(value(r, c)), 255], 4 * (r * columns + c));
  context.putImageData(image, 0, 0);
}
