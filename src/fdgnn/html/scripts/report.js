// The page's script: theme, choice of the run, charts, tooltips, graphs, copying.
// Text from data files reaches the page by textContent only.

import { all, copies, element, letters, root, shape, themed } from "./elements.js";

const page = JSON.parse(document.getElementById("page-data").textContent);

themed(document.getElementById("theme"));

const tables = new Map();

function table(name) {
  if (!tables.has(name)) {
    const { fields, rows } = page.tables[name];
    const objects = rows.map((row) => Object.fromEntries(fields.map((f, i) => [f, row[i]])));
    tables.set(name, objects);
  }
  return tables.get(name);
}

// ---------------------------------------------------------------------- tooltips

const tip = element("div", { class: "tip", role: "tooltip" });
tip.hidden = true;
document.body.append(tip);

function showTip(handler, event, item, value) {
  const facts = value && typeof value === "object" ? Object.entries(value) : [];
  tip.hidden = facts.length === 0;
  if (tip.hidden) return;
  const list = element("dl");
  for (const [name, text] of facts) {
    if (text === "" || text === null || text === undefined || text === "null") continue;
    list.append(element("dt", {}, name), element("dd", {}, String(text)));
  }
  tip.replaceChildren(list);
  const gap = 14;
  const { width, height } = tip.getBoundingClientRect();
  let left = event.clientX + gap;
  if (left + width > root.clientWidth - 4) left = event.clientX - gap - width;
  let top = event.clientY + gap;
  if (top + height > window.innerHeight - 4) top = event.clientY - gap - height;
  tip.style.left = `${Math.max(4, Math.min(left, root.clientWidth - width - 4))}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

window.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
document.addEventListener("click", (event) => {
  if (!event.target.closest(".chart")) tip.hidden = true;
});

// ---------------------------------------------------------------------- charts

const views = new Map();
const waiting = [];
let working = false;

function fail(place, error) {
  views.delete(place);
  place.dataset.state = "failed";
  const text = "This chart could not be drawn; its numbers are in the table below.";
  place.replaceChildren(element("p", { class: "absent" }, text));
  console.error(error);
}

// ast: no text becomes code. Expressions are interpreted, and the page forbids eval.
const BARE = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false };
let View = null;

// Vega only logs errors while it draws, and shows an empty chart. The bundle does not export its
// class of views, so the class is taken from the view of an empty chart.
async function viewFor(place) {
  if (!View) {
    const nothing = { data: { values: [] }, mark: "point" };
    const { view } = await vegaEmbed(element("div"), nothing, BARE);
    View = view.constructor;
    view.finalize();
  }
  return class extends View {
    error(...problem) {
      place.dataset.problem = problem.join(" ");
      if (place.dataset.state === "drawn") fail(place, place.dataset.problem);
      return this;
    }
  };
}

async function draw(place) {
  const { spec, uses } = page.charts[place.dataset.chart];
  spec.datasets = { ...spec.datasets, ...Object.fromEntries(uses.map((u) => [u, table(u)])) };
  const viewClass = await viewFor(place);
  const { view } = await vegaEmbed(place, spec, { ...BARE, tooltip: showTip, viewClass });
  if (place.dataset.problem) throw new Error(place.dataset.problem);
  views.set(place, view);
  for (const svg of all("svg", place)) svg.setAttribute("aria-hidden", "true");
  listen(place, view);
  place.dataset.state = "drawn";
}

function listen(place, view) {
  // A finger cannot hover: a tap shows what a pointer over the mark would show.
  view.addEventListener("click", (event, item) => showTip(view, event, item, item?.tooltip));
  const linked = place.closest("[data-linked]");
  if (linked) {
    view.addEventListener("click", (_, item) => follow(linked, item?.datum?.c ?? -1));
    view.addEventListener("mouseover", (_, item) => follow(linked, item?.datum?.c ?? -1));
    view.addEventListener("mouseout", () => follow(linked, -1));
  }
  const map = place.closest("[data-map]");
  if (map) {
    view.addEventListener("click", (_, item) => {
      if (item?.datum?.graph !== undefined) maps.get(map).show(item.datum.graph);
    });
    maps.get(map).ready(view);
  }
}

function follow(figure, number) {
  for (const place of all(".chart", figure)) {
    const view = views.get(place);
    if (view && view.signal("hot") !== number) view.signal("hot", number).runAsync();
  }
}

// Charts are drawn one by one, so that the page responds. Hidden charts wait until they are shown.
async function drawAll() {
  for (const place of all(".chart:not([data-state])")) {
    if (place.offsetParent !== null) {
      place.dataset.state = "waiting";
      waiting.push(place);
    }
  }
  if (working) return;
  working = true;
  delete root.dataset.ready;
  while (waiting.length) {
    const place = waiting.shift();
    try {
      await draw(place);
    } catch (error) {
      fail(place, error);
    }
    await new Promise((resolve) => setTimeout(resolve));
  }
  working = false;
  root.dataset.ready = "yes";
}

// ---------------------------------------------------------------------- which run is shown

const chooser = document.getElementById("run");

function showRun(run) {
  for (const block of all("[data-run]")) block.hidden = block.dataset.run !== run;
  for (const note of all("[data-needs]")) {
    note.hidden = all(`[data-run="${run}"]`, note.parentElement).length > 0;
  }
  window.dispatchEvent(new Event("resize")); // charts that were hidden may have another width
  if (window.vegaEmbed) drawAll();
}

if (chooser) {
  document.getElementById("chooser").hidden = false;
  chooser.addEventListener("change", () => showRun(chooser.value));
  showRun(chooser.value);
}

// ---------------------------------------------------------------------- graphs

const length = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);

// With `seen`, what each vertex is to a substructure takes the place of contributions.
function drawGraph(drawing, words, seen) {
  const at = [];
  for (let i = 0; i < drawing.positions.length; i += 2) {
    at.push([drawing.positions[i], drawing.positions[i + 1]]);
  }
  const edges = [];
  for (let i = 0; i < drawing.edges.length; i += 2) {
    edges.push([drawing.edges[i], drawing.edges[i + 1]]);
  }
  const lengths = edges.map(([u, v]) => length(at[u], at[v])).filter((l) => l > 0);
  lengths.sort((a, b) => a - b);
  let unit = Math.min(240, Math.max(26, lengths[lengths.length >> 1] || 200));
  const xs = at.map((p) => p[0]), ys = at.map((p) => p[1]);
  const sides = [xs, ys].map((values) => Math.max(...values) - Math.min(...values));
  const longest = Math.max(...sides);
  const area = longest * Math.max(Math.min(...sides), 0.5 * longest);
  // In a dense graph, vertices lie closer to each other than the length of an edge.
  if (!drawing.molecule && area > 0) unit = Math.min(unit, 0.8 * Math.sqrt(area / at.length));
  const pad = 0.6 * unit;
  const [left, top] = [Math.min(...xs) - pad, Math.min(...ys) - pad];
  const width = Math.max(...xs) + pad - left, height = Math.max(...ys) + pad - top;
  const svg = shape("svg", {
    viewBox: `${left} ${top} ${width} ${height}`, role: "img", "aria-label": words,
    class: `graph${drawing.molecule ? " molecule" : ""}${edges.length > 3 * at.length ? " dense" : ""}${seen ? " marked" : ""}`,
  });
  const layers = ["edges", "halos", "vertices", "names"].map((name) => shape("g", { class: name }));
  svg.append(...layers);
  const ends = new Array(at.length).fill(0);
  edges.forEach(([u, v], i) => {
    ends[u] += 1;
    ends[v] += 1;
    const layer = seen ? layers[0].appendChild(shape("g", { class: edgeKind(seen, u, v) })) : layers[0];
    drawEdge(layer, at[u], at[v], drawing.orders ? drawing.orders[i] : 1, unit, drawing);
  });
  if (seen) layers[0].append(...all(".near", layers[0])); // on top of pale edges
  drawVertices(layers, drawing, at, ends, unit, seen);
  return svg;
}

function edgeKind({ steps, radius }, u, v) {
  const both = steps[u] >= 0 && steps[v] >= 0;
  return both && Math.min(steps[u], steps[v]) < radius ? "near" : "far";
}

// Which kind of vertex it is to a substructure, how large it is drawn, and what is said of it.
function markOf(step) {
  if (step === 0) return ["center", 0.3, "is meant"];
  const far = `${step} ${step === 1 ? "step" : "steps"} away`;
  return step > 0 ? ["around", 0.22, far] : ["pale", 0.13, "not part of it"];
}

function drawEdge(layer, a, b, order, unit, drawing) {
  if (a === b) {
    const r = 0.28 * unit;
    layer.append(shape("circle", { cx: a[0] + r, cy: a[1] - r, r, class: "loop" }));
    return;
  }
  const l = length(a, b) || 1;
  const side = [-(b[1] - a[1]) / l, (b[0] - a[0]) / l];
  const line = (shift, kind) => layer.append(shape("line", {
    x1: a[0] + shift * side[0], y1: a[1] + shift * side[1],
    x2: b[0] + shift * side[0], y2: b[1] + shift * side[1], class: kind,
  }));
  const gap = 0.075 * unit;
  if (!drawing.molecule || order === 1 || !order) line(0, "bond");
  else if (order === 2) [-gap, gap].forEach((shift) => line(shift, "bond"));
  else if (order === 3) [-2 * gap, 0, 2 * gap].forEach((shift) => line(shift, "bond"));
  else { line(-gap, "bond"); line(gap, "bond aromatic"); }
  if (drawing.directed) {
    const along = [(b[0] - a[0]) / l, (b[1] - a[1]) / l];
    const tip = [b[0] - 0.22 * unit * along[0], b[1] - 0.22 * unit * along[1]];
    const wing = (s) => [
      tip[0] - 0.16 * unit * along[0] + s * 0.08 * unit * side[0],
      tip[1] - 0.16 * unit * along[1] + s * 0.08 * unit * side[1],
    ];
    layer.append(shape("polygon", { points: [tip, wing(1), wing(-1)].join(" "), class: "arrow" }));
  }
}

function drawVertices([, halos, vertices, names], drawing, at, ends, unit, seen) {
  const values = seen ? null : drawing.contributions;
  const most = values ? Math.max(...values.map(Math.abs), 1e-12) : 1;
  const small = at.length > 80;
  at.forEach(([cx, cy], v) => {
    const strength = values ? Math.abs(values[v]) / most : 0;
    const label = drawing.labels ? drawing.labels[v] : "";
    const written = label && !small && !(drawing.molecule && label === "C" && ends[v] > 0);
    const size = 0.4 * unit;
    if (drawing.molecule && written) halos.append(shape("circle", { cx, cy, r: 0.24 * unit }));
    const least = drawing.molecule ? (written ? 0.2 : 0.13) : 0.15;
    const [mark, share, told] = seen ? markOf(seen.steps[v]) : [];
    const r = (mark ? share : least + (drawing.molecule ? 0.22 : 0.13) * strength) * unit;
    if (!drawing.molecule) halos.append(shape("circle", { cx, cy, r }));
    const kind = mark === "pale" && written ? "pale written" : mark ?? (!values ? "plain" : values[v] >= 0 ? "for" : "against");
    const dot = shape("circle", { cx, cy, r, class: `vertex ${kind}` });
    if (values) {
      dot.setAttribute("fill-opacity", (0.06 + 0.58 * strength).toFixed(2));
      const share = values[v].toPrecision(2);
      dot.append(shape("title", {}, `vertex ${v}${label ? `, ${label}` : ""}: ${share}`));
    }
    if (mark) dot.append(shape("title", {}, `vertex ${v}${label ? `, ${label}` : ""}: ${told}`));
    if (drawing.molecule && (mark === "pale" || (!mark && !values))) dot.setAttribute("visibility", "hidden");
    vertices.append(dot);
    if (written) {
      const whole = letters(label), few = whole.length > 4;
      const short = few ? `${whole.slice(0, 3).join("")}…` : label;
      const wide = Math.max(1, (few ? 4 : whole.length) / 2);
      names.append(shape("text", {
        x: cx, y: cy, class: mark === "pale" ? "faint" : "", "font-size": (drawing.molecule ? size : 0.8 * size) / Math.sqrt(wide),
      }, short));
    }
  });
}

function contributionTable(drawing) {
  const most = 200;
  const order = drawing.contributions.map((value, v) => [v, value]);
  order.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const head = element("tr", {}, ...["vertex", "label", "contribution"].map(
    (text) => element("th", { scope: "col" }, text)));
  const rows = order.slice(0, most).map(([v, value]) => element("tr", {},
    element("td", {}, String(v)),
    element("td", {}, drawing.labels ? drawing.labels[v] : "–"),
    element("td", { class: "number" }, value.toPrecision(3).replace("-", "−"))));
  return element("div", { class: "wide" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function details(drawing) {
  const made = element("details", {}, element("summary", {}, "Table: contributions"));
  made.addEventListener("toggle", () => {
    if (made.open && made.children.length === 1) made.append(contributionTable(drawing));
  });
  return made;
}

for (const place of all("[data-graph]")) {
  const drawing = page.drawings[place.dataset.source]?.[place.dataset.graph];
  const steps = (place.dataset.steps ?? "").split(" ").filter(Boolean).map(Number);
  const marked = "steps" in place.dataset;
  if (drawing && marked && steps.length) {
    const meant = steps.flatMap((step, v) => (step === 0 ? [v] : []));
    const words = `Graph ${place.dataset.graph}; meant: vertex ${meant.join(", ")}`;
    place.append(drawGraph(drawing, words, { steps, radius: Number(place.dataset.radius) }));
  } else if (drawing && !marked) {
    place.append(drawGraph(drawing, `Graph ${place.dataset.graph}`));
    if (drawing.contributions) place.after(details(drawing));
  } else {
    place.append(element("p", { class: "absent" }, "Not drawn: it is too large, or the page was."));
  }
}

// ---------------------------------------------------------------------- the map of the graphs

const maps = new Map();

function mapOf(figure) {
  const source = figure.dataset.source;
  const rows = [...table(`graphs-${source}`)].sort((a, b) => a.graph - b.graph);
  const known = new Map(rows.map((row, i) => [row.graph, i]));
  const list = figure.querySelector("select");
  const picture = figure.querySelector(".picture");
  const facts = figure.querySelector(".facts");
  let view = null, now = 0;
  for (const row of rows) {
    const wrong = row.judged && row.answer === "wrong" ? ", wrong" : "";
    list.append(element("option", { value: row.graph }, `${row.words}${wrong}`));
  }

  function show(graph) {
    if (!known.has(graph)) return;
    now = known.get(graph);
    const row = rows[now];
    list.value = String(graph);
    tellFacts(row);
    const drawing = page.drawings[source]?.[graph];
    picture.replaceChildren();
    if (drawing) {
      picture.append(drawGraph(drawing, `Graph ${graph}, ${row.size_}`));
      if (drawing.contributions) picture.append(details(drawing));
    } else {
      picture.append(element("p", { class: "absent" },
        "Not drawn: the page keeps the drawings of the graphs that fit into it."));
    }
    figure.dataset.shown = graph;
    if (view) view.signal("picked", graph).runAsync();
  }

  function tellFacts(row) {
    const smiles = page.drawings[source]?.[row.graph]?.smiles;
    const told = [
      ["graph", row.id === String(row.graph) ? row.id : `${row.graph}, ${row.id}`],
      ["actual", row.actual],
      ["predicted", row.predicted],
      ["answer", row.judged ? row.answer : "–"],
      ["probability", row.probability_],
      ["score", row.score_],
      ["size", row.size_],
      ["held out in fold", row.fold ?? "–"],
      ["SMILES", smiles || "–"],
    ].filter(([, text]) => text !== "–");
    facts.replaceChildren(...told.flatMap(([name, text]) => {
      const kind = name === "answer" ? { class: row.answer } : {};
      return [element("dt", {}, name), element("dd", kind, String(text))];
    }));
  }

  const step = (by) => show(rows[(now + by + rows.length) % rows.length].graph);
  list.addEventListener("change", () => show(Number(list.value)));
  figure.querySelector(".before").addEventListener("click", () => step(-1));
  figure.querySelector(".after").addEventListener("click", () => step(1));
  for (const choice of all("input[type=radio]", figure)) {
    choice.addEventListener("change", () => colorBy(choice.value));
  }

  function colorBy(mode) {
    for (const key of all("[data-mode]", figure)) key.hidden = key.dataset.mode !== mode;
    view?.signal("by", mode).runAsync();
  }

  return {
    show,
    ready(drawn) {
      view = drawn;
      const choice = figure.querySelector("input[type=radio]:checked");
      view.signal("picked", rows[now].graph);
      colorBy(choice ? choice.value : "class");
    },
  };
}

for (const figure of all("[data-map]")) {
  maps.set(figure, mapOf(figure));
  maps.get(figure).show(Number(figure.dataset.first));
}

// ---------------------------------------------------------------------- copying

for (const copier of all("[data-copy]")) {
  copies(copier, () => copier.closest(".command").querySelector("code").textContent);
}

// ---------------------------------------------------------------------- the section in view

const links = new Map(all(".toc a").map((link) => [link.hash.slice(1), link]));
const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) {
      links.forEach((link) => link.removeAttribute("aria-current"));
      links.get(entry.target.id)?.setAttribute("aria-current", "true");
    }
  }
}, { rootMargin: "-20% 0px -70% 0px" });
for (const section of all("main > section")) observer.observe(section);

document.addEventListener("DOMContentLoaded", () => drawAll());
