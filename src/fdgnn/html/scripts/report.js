// The page's script: theme, choice of the run, charts, tooltips, graphs, copying.
// Text from data files reaches the page by textContent only.

import { draw, windowOf } from "./drawing.js";
import { all, choosable, copies, element, root, shape, themed, vertexTable, written } from "./elements.js";

const page = JSON.parse(document.getElementById("page-data").textContent);

themed(document.getElementById("theme"));

// The rows that the charts of a figure draw.
const rowsOf = (figure) => JSON.parse(figure.querySelector(".rows").textContent);

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

const waiting = [];
let working = false;

function fail(place, error) {
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

async function drawChart(place) {
  const spec = JSON.parse(place.querySelector("script").textContent);
  spec.datasets = { rows: rowsOf(place.closest("figure")) };
  const viewClass = await viewFor(place);
  const { view } = await vegaEmbed(place, spec, { ...BARE, tooltip: showTip, viewClass });
  if (place.dataset.problem) throw new Error(place.dataset.problem);
  for (const svg of all("svg", place)) svg.setAttribute("aria-hidden", "true");
  listen(place, view);
  place.dataset.state = "drawn";
}

function listen(place, view) {
  // Touch devices cannot hover: a tap shows the tooltip of a mark.
  view.addEventListener("click", (event, item) => showTip(view, event, item, item?.tooltip));
  const map = place.closest(".map");
  if (map) {
    view.addEventListener("click", (_, item) => {
      if (item?.datum?.graph !== undefined) maps.get(map).show(item.datum.graph);
    });
    maps.get(map).ready(view);
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
      await drawChart(place);
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

const pairsOf = (flat) => Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1]]);

// A graph of the page. With `steps`, the distances from the center of a substructure, and its `radius`, these are shown
// instead of attributions.
function drawGraph(drawing, words, steps = null, radius = 0) {
  const { molecule, directed, labels, orders } = drawing, values = steps ? null : drawing.attributions;
  const at = pairsOf(drawing.positions), unit = unitOf(drawing, at);
  const vertices = at.map(([x, y]) => ({ x: x / unit, y: y / unit }));
  const edges = pairsOf(drawing.edges).map(([u, v]) => ({ u, v }));
  const svg = shape("svg", { role: "img", "aria-label": words });
  const named = (v, text) => `vertex ${v}${labels?.[v] ? `, ${labels[v]}` : ""}: ${text}`;
  const near = ({ u, v }) => Math.min(steps[u], steps[v]) >= 0 && Math.min(steps[u], steps[v]) < radius;
  draw(svg, { vertices, edges, directed }, {
    window: windowOf(vertices, 0.6, [0, 0]), molecule, nameOf: (v) => labels?.[v] ?? "", orderOf: (e) => orders?.[e] ?? 1,
    values, most: values && Math.max(...values.map(Math.abs), 1e-12),
    ...(steps && { markOf: (v) => markOf(steps[v]), edgeKind: (e) => (near(edges[e]) ? "near" : "far") }),
    ...((steps || values) && { titleOf: (v) => named(v, steps ? markOf(steps[v]).words : written(values[v], 2)) }),
  });
  return svg;
}

// The unit of length: the median edge, or less if vertices of a dense graph lie closer.
function unitOf({ edges, molecule }, at) {
  const lengths = pairsOf(edges).map(([u, v]) => Math.hypot(at[u][0] - at[v][0], at[u][1] - at[v][1])).filter((l) => l > 0);
  lengths.sort((a, b) => a - b);
  const unit = Math.min(240, Math.max(26, lengths[lengths.length >> 1] || 200));
  const sides = [0, 1].map((k) => Math.max(...at.map((p) => p[k])) - Math.min(...at.map((p) => p[k])));
  const longest = Math.max(...sides), area = longest * Math.max(Math.min(...sides), 0.5 * longest);
  return !molecule && area > 0 ? Math.min(unit, 0.8 * Math.sqrt(area / at.length)) : unit;
}

// The mark of a vertex by its distance from the vertices of a substructure; -1 if the vertex is not part of it.
function markOf(step) {
  if (step === 0) return { kind: "center", r: 0.3, words: "is meant" };
  if (step < 0) return { kind: "pale", r: 0.13, words: "not part of it" };
  return { kind: "around", r: 0.22, words: `${step} ${step === 1 ? "step" : "steps"} away` };
}

function details(drawing) {
  const made = element("details", {}, element("summary", {}, "Table: attributions"));
  made.addEventListener("toggle", () => {
    if (!made.open || made.children.length > 1) return;
    const table = vertexTable(["vertex", "label", "attribution"], drawing.attributions,
      (v) => drawing.labels?.[v] ?? "–", (value) => [written(value, 3)]);
    made.append(element("div", { class: "wide" }, table));
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
    place.append(drawGraph(drawing, words, steps, Number(place.dataset.radius)));
  } else if (drawing && !marked) {
    place.append(drawGraph(drawing, `Graph ${place.dataset.graph}`));
    if (drawing.attributions) place.after(details(drawing));
  } else {
    place.append(element("p", { class: "absent" }, "Not drawn: it is too large, or the page was."));
  }
}

// ---------------------------------------------------------------------- the map of the graphs

const maps = new Map();

function mapOf(figure) {
  const source = figure.dataset.source;
  const rows = rowsOf(figure).sort((a, b) => a.graph - b.graph);
  const known = new Map(rows.map((row, i) => [row.graph, i]));
  const list = figure.querySelector("select");
  const picture = figure.querySelector(".picture");
  const facts = figure.querySelector(".facts");
  let view = null, now = 0;
  const entries = rows.map((row) => [row.graph, `${row.words}${row.wrong ? ", wrong" : ""}`]);
  choosable(list, figure.querySelector(".before"), figure.querySelector(".after"), entries, show);

  function show(graph) {
    if (!known.has(graph)) return;
    now = known.get(graph);
    const row = rows[now];
    list.value = String(graph);
    tellFacts(row);
    const drawing = page.drawings[source]?.[graph];
    picture.replaceChildren();
    if (drawing) {
      picture.append(drawGraph(drawing, `Graph ${graph}, ${row.size}`));
      if (drawing.attributions) picture.append(details(drawing));
    } else {
      picture.append(element("p", { class: "absent" },
        "Not drawn: the page keeps the drawings of the graphs that fit into it."));
    }
    figure.dataset.shown = graph;
    if (view) view.signal("picked", graph).runAsync();
  }

  function tellFacts(row) {
    const smiles = page.drawings[source]?.[row.graph]?.smiles, answer = row.wrong ? "wrong" : "right";
    const told = [
      ["graph", row.id === String(row.graph) ? row.id : `${row.graph}, ${row.id}`],
      ["actual", row.actual],
      ["predicted", row.predicted],
      ["answer", row.judged ? answer : "–"],
      ["probability", row.probability],
      ["score", row.score],
      ["size", row.size],
      ["held out in fold", row.fold ?? "–"],
      ["SMILES", smiles || "–"],
    ].filter(([, text]) => text !== "–");
    facts.replaceChildren(...told.flatMap(([name, text]) => {
      const kind = name === "answer" ? { class: answer } : {};
      return [element("dt", {}, name), element("dd", kind, String(text))];
    }));
  }

  return {
    show,
    ready(drawn) {
      view = drawn;
      view.signal("picked", rows[now].graph).runAsync();
    },
  };
}

for (const figure of all(".map")) {
  maps.set(figure, mapOf(figure));
  maps.get(figure).show(Number(figure.dataset.first));
}

// ---------------------------------------------------------------------- copying

for (const copier of all("[data-copy]")) {
  copies(copier, () => copier.closest(".command").querySelector("code").textContent);
}

document.addEventListener("DOMContentLoaded", () => drawAll());
