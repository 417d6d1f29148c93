// The second tab: states of a reservoir that converge, or WL labels that are refined.

import { curves, draw, windowOf } from "./drawing.js";
import { byId, element, shape, signed } from "./elements.js";
import { structureOf } from "./graphs.js";

const SHOWN_STEPS = 60, STILL = 1e-6, HEAVIEST = 8, MOST_NEIGHBORS = 6, INKS = 7;

export class Watch {
  constructor(stage) {
    this.stage = stage;
    this.step = 0;
    this.timer = null;
    this.lit = null;
    byId("member").addEventListener("change", () => this.begin());
    byId("step").addEventListener("input", () => {
      this.pause();
      this.go(Number(byId("step").value));
    });
    byId("run-steps").addEventListener("click", () => (this.timer ? this.pause() : this.run()));
    stage.listeners.push(({ moved }) => {
      if (!moved) this.stale = true;
      if (!byId("watch").hidden) this.open();
    });
    this.stale = true;
  }

  open() {
    if (this.stale) this.fill();
    this.stale = false;
  }

  // Parts of the model: each encoder of each estimator, except pair counts, which have no steps.
  parts() {
    const { estimators } = this.stage.model;
    return estimators.flatMap((estimator, i) => {
      const alike = estimators.filter(({ name }) => name === estimator.name);
      const number = alike.length > 1 ? ` ${alike.indexOf(estimator) + 1}` : "";
      return estimator.blocks.map((block, b) => ({
        estimator, block, b, i,
        name: [estimator.name + number, estimator.blocks.length > 1 ? block.encoder.kind : ""].filter(Boolean).join(", "),
      }));
    }).filter(({ block }) => block.encoder.kind !== "pairs");
  }

  fill() {
    const list = byId("member"), before = list.selectedIndex;
    list.replaceChildren(...this.parts().map(({ name }, i) => element("option", { value: i }, name)));
    list.selectedIndex = Math.max(0, Math.min(before, list.options.length - 1));
    list.parentElement.hidden = list.options.length < 2;
    this.begin();
  }

  begin() {
    this.pause();
    this.lit = null;
    const { stage } = this, part = this.parts()[byId("member").selectedIndex];
    const graph = stage.graph(), empty = stage.explanation.empty || stage.explanation.refused;
    byId("watch-panel").replaceChildren();
    if (empty || !part) {
      byId("watch-lead").textContent = "There is nothing to watch for this graph and model.";
      this.film = null;
      byId("watched").replaceChildren();
      return;
    }
    this.film = part.block.encoder.kind === "reservoir" ? new ReservoirFilm(stage, graph, part) : new LabelFilm(stage, graph, part, this);
    byId("watch-lead").textContent = this.film.lead;
    byId("step").max = String(this.film.length - 1);
    byId("watch-panel").replaceChildren(...this.film.panel);
    this.go(0);
  }

  go(step) {
    if (!this.film) return;
    this.step = Math.min(step, this.film.length - 1);
    byId("step").value = String(this.step);
    byId("step-name").textContent = this.film.name(this.step);
    byId("step-words").textContent = this.film.words(this.step);
    const { stage } = this, { sketch } = stage;
    draw(byId("watched"), sketch, {
      ...stage.view, window: windowOf(sketch.vertices), lit: this.lit, ...this.film.view(this.step),
    });
    this.film.shown?.(this.step);
  }

  run() {
    if (!this.film) return;
    if (this.step >= this.film.length - 1) this.go(0);
    byId("run-steps").textContent = "Pause";
    this.timer = setInterval(() => {
      if (this.step >= this.film.length - 1) this.pause();
      else this.go(this.step + 1);
    }, this.film.pace);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    byId("run-steps").textContent = "Play";
  }
}

// ---------------------------------------------------------------------- states that converge

// Between the two inks of the page: −1 blue, 0 gray, +1 red; distinguishable by color-blind people, and by depth.
const inkOf = (value) => {
  const ends = value < 0 ? [31, 102, 176] : [194, 49, 47], middle = [226, 228, 231], share = Math.min(1, Math.abs(value));
  return middle.map((m, i) => Math.round(m + (ends[i] - m) * share));
};

class ReservoirFilm {
  constructor(stage, graph, { block }) {
    const { encoder } = block;
    this.stage = stage;
    this.encoder = encoder;
    this.structure = structureOf(graph);
    this.layers = encoder.trajectory(graph, this.structure, STILL, SHOWN_STEPS);
    this.frames = this.layers.flatMap((steps, layer) => steps.map((_, i) => ({ layer, i })));
    this.length = this.frames.length;
    this.pace = 160;
    this.neuron = 0;
    this.lead = "Each layer starts from zero and is iterated: a vertex reads its neighbors, until the states converge. The fixed point is the input of the next layer, and in the end of the readout.";
    this.panel = this.parts();
  }

  parts() {
    this.chart = shape("svg");
    const list = element("select", {}, ...Array.from({ length: this.encoder.H }, (_, h) => element("option", { value: h }, `unit ${h}`)));
    this.neuron = this.liveliest();
    list.value = String(this.neuron);
    list.addEventListener("change", () => {
      this.neuron = Number(list.value);
      byId("step").dispatchEvent(new Event("input"));
    });
    const box = (...children) => element("div", { class: "side" }, ...children);
    return [
      box(element("h3", {}, "Change of the states"), this.chart),
      box(element("div", { class: "steps" }, element("label", {}, "The picture shows ", list))),
      box(this.certificate()),
    ];
  }

  // The unit whose states differ most between vertices, in the last layer.
  liveliest() {
    const { states } = this.layers.at(-1).at(-1), n = this.structure.n;
    const spread = (h) => {
      const own = states.subarray(h * n, (h + 1) * n);
      return Math.max(...own) - Math.min(...own);
    };
    return Array.from({ length: this.encoder.H }, (_, h) => h).reduce((a, b) => (spread(b) > spread(a) ? b : a), 0);
  }

  certificate() {
    const bounds = this.encoder.contractions(this.structure), worst = Math.max(...bounds);
    const found = element("p", { class: "certificate" });
    found.append(element("b", {}, worst < 1 ? "Certified. " : "Not certified. "),
      `ρ(|W|) ρ(A) is at most ${worst.toFixed(3)} in ${bounds.length > 1 ? "every layer" : "the layer"}. `,
      worst < 1
        ? "Below 1 there is just one fixed point, wherever the iteration starts, and any order of evaluation finds it."
        : `At 1 or above there may be several, or none: the model takes the states after ${this.encoder.parameters.max_iter} iterations from zero, or when they hardly change.`);
    return found;
  }

  name(step) {
    const { layer, i } = this.frames[step];
    return `Layer ${layer + 1} of ${this.layers.length}, iteration ${i + 1} of ${this.layers[layer].length}`;
  }

  words(step) {
    const { layer, i } = this.frames[step];
    return `This iteration changed the states by ${this.layers[layer][i].distance.toExponential(1)}.`;
  }

  view(step) {
    const { layer, i } = this.frames[step], n = this.structure.n;
    const { states } = this.layers[layer][i], own = states.subarray(this.neuron * n, (this.neuron + 1) * n);
    return {
      paint: Array.from(own, (x) => `rgb(${inkOf(x).join(" ")})`),
      inks: Array.from(own, (x) => (Math.abs(x) > 0.5 ? "#ffffff" : "#1b2026")),
      titleOf: (v) => `${this.stage.vertexInWords(v)}: ${signed(own[v])}`,
    };
  }

  shown(step) {
    const { layer, i } = this.frames[step];
    const all = this.layers.map((steps, l) => ({ values: steps.map((s) => s.distance), marked: l === layer }));
    curves(this.chart, all, { now: i, across: "iteration", up: "change", words: "Change of the states, by iteration and layer" });
  }
}

// ---------------------------------------------------------------------- WL labels that are refined

const tint = (group) => `color-mix(in srgb, var(--c${(group % INKS) + 1}) 45%, var(--soft))`;

class LabelFilm {
  constructor(stage, graph, { estimator, block, b }, watch) {
    this.stage = stage;
    this.watch = watch;
    const structure = (this.structure = structureOf(graph)), encoded = estimator.encode(graph, structure);
    const { outputs, target } = stage.explanation;
    const signs = stage.model.signs(target, outputs.length);
    const direction = encoded.split(estimator.readout.direction(encoded.features, signs))[b];
    const part = encoded.parts[b];
    this.rows = part.own.rows;
    this.shares = part.own.shares(part.back(direction));
    this.length = this.rows.length;
    this.pace = 1200;
    this.graph = graph;
    this.lead = "Weisfeiler-Lehman: at first a vertex's label is what it carries. In each iteration it is hashed with the labels of its neighbors, so that after i iterations it stands for everything up to i steps away. The model counts these WL labels; each adds its weight to the score as often as it occurs.";
    this.panel = [this.heaviest()];
  }

  // The WL labels with the largest attributions, positive or negative.
  heaviest() {
    const found = this.shares.flatMap(({ sums, sizes }, t) => sums.map((sum, group) => ({ t, group, sum, size: sizes[group] })));
    found.sort((a, b) => Math.abs(b.sum) - Math.abs(a.sum));
    const list = element("ul", { class: "colors-list" });
    for (const each of found.slice(0, HEAVIEST)) {
      const swatch = element("span", { class: "swatch" }, String(each.group + 1));
      swatch.style.background = tint(each.group);
      const button = element("button", { type: "button", "aria-pressed": "false" }, swatch,
        element("span", {}, `${this.describe(each)}${each.size > 1 ? `, ${each.size} times` : ""}`), element("b", {}, signed(each.sum)));
      button.addEventListener("click", () => {
        const on = button.getAttribute("aria-pressed") === "false";
        for (const other of list.querySelectorAll("button")) other.setAttribute("aria-pressed", "false");
        button.setAttribute("aria-pressed", String(on));
        this.watch.pause();
        this.watch.lit = on ? new Set([...this.rows[each.t].groups].flatMap((g, v) => (g === each.group ? [v] : []))) : null;
        this.watch.go(each.t);
      });
      list.append(element("li", {}, button));
    }
    const words = this.stage.model.classes ? `for class ${this.stage.className(this.stage.explanation.target)}` : "for the number";
    return element("div", { class: "side" }, element("h3", {}, `WL labels with the largest attributions ${words}`), list);
  }

  // A WL label in words, by one of the vertices that have it: its first label, and from iteration 1 on its neighbors.
  describe({ t, group }) {
    const { stage } = this, { channel, round, groups } = this.rows[t], v = groups.indexOf(group);
    const { indptr, neighbors } = this.structure, around = [...neighbors.subarray(indptr[v], indptr[v + 1])];
    const degree = (u) => indptr[u + 1] - indptr[u], labeled = channel === "label" || stage.rules;
    if (!labeled && channel !== "degree") return `${channel}, as at ${stage.vertexWord} ${v}`;
    const what = labeled ? [stage.nameOf(v) || "vertex", ...stage.atomFacts(v)].join(", ") : `vertex of degree ${degree(v)}`;
    if (round === 0) return what;
    const beside = around.map((u) => (labeled ? stage.nameOf(u) || "vertex" : degree(u))).sort();
    const shown = [...beside.slice(0, MOST_NEIGHBORS), ...(beside.length > MOST_NEIGHBORS ? ["…"] : [])].join(", ");
    const near = beside.length ? ` beside ${labeled ? "" : "degree "}${shown}` : " alone";
    return `${what}${near}${round > 1 ? `, and all up to ${round} steps away` : ""}`;
  }

  name(step) {
    const row = this.rows[step];
    return `${row.channel === "label" ? "" : `${row.channel}, `}iteration ${row.round}`;
  }

  words(step) {
    const row = this.rows[step], n = Math.max(...row.groups) + 1;
    return `${n} distinct WL label${n > 1 ? "s" : ""}; vertices with the same number have the same surroundings so far.`;
  }

  view(step) {
    const { groups } = this.rows[step];
    return {
      paint: Array.from(groups, tint),
      inside: Array.from(groups, (g) => String(g + 1)),
    };
  }
}
