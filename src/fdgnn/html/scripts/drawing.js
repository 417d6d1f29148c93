// A sketch as SVG. One unit is the length of an edge.

import { BOND_ORDERS } from "./chemistry.js";
import { letters, shape } from "./elements.js";

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
