// Training by sliders: settings, and their results.

import { histogram } from "./drawing.js";
import { byId, copies, element, shape } from "./elements.js";
import { trainedModel } from "./training.js";

const SLIDERS = [
  { name: "rho", label: "ρ", words: "effective spectral radius", min: 0.02, max: 1.5, step: 0.02, value: 0.9 },
  { name: "omega1", label: "ω(1)", words: "input scaling", min: 0.02, max: 2, step: 0.02, value: 1 },
  { name: "omega", label: "ω", words: "scaling between layers", min: 0.02, max: 2, step: 0.02, value: 1 },
  { name: "depth", label: "Layers", words: "each reads the fixed point of the one below", min: 1, max: 6, step: 1, value: 3 },
  { name: "units", label: "Units", words: "units in each layer", min: 5, max: 100, step: 5, value: 50 },
  { name: "strength", label: "alpha", words: "regularization strength of the readout (alpha)", min: -6, max: 3, step: 0.25, value: -3 },
  { name: "seed", label: "Seed", words: "random initialization (random_state)", min: 0, max: 50, step: 1, value: 0 },
];
const SIGNS = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "M-4 -4h8v8h-8z", "M0 -5l5 9h-10z", "M-5 0l5 -5l5 5l-5 5z", "M-4.5 -1.5h3v-3h3v3h3v3h-3v3h-3v-3h-3z"];

export class Train {
  // `workers` share the graphs among them; the first solves the readout.
  constructor(stage, workers, openPlay) {
    this.stage = stage;
    this.workers = workers;
    this.openPlay = openPlay;
    this.best = 0;
    this.summary = byId("summary").textContent;
    this.training = stage.content.training;
    const { graphs } = stage.content, some = graphs.list.length;
    byId("train-lead").textContent = `The paper's model on ${some === graphs.n_all ? `the ${some}` : `${some} of the ${graphs.n_all}`} graphs of ${stage.content.dataset}. Only a linear readout is trained, so a move of a slider draws the reservoir, embeds all graphs, and cross-validates the readout, in this page.`;
    this.makeSliders();
    copies(byId("copy-code"), () => this.code());
    byId("map").addEventListener("click", ({ target }) => this.showGraph(target));
  }

  makeSliders() {
    const form = byId("sliders");
    for (const { name, label, words, min, max, step, value } of SLIDERS) {
      const input = element("input", { type: "range", name, min, max, step, value, "aria-label": `${label}, ${words}` });
      const output = element("output", {});
      input.addEventListener("input", () => this.moved());
      form.append(element("label", {}, output, element("b", {}, label), " ", element("small", {}, words), input));
    }
    const use = element("button", { type: "button", id: "use-trained" }, "Play with this model");
    use.addEventListener("click", () => this.use());
    const back = element("button", { type: "button", id: "use-own", hidden: "" }, "Back to the page's model");
    back.addEventListener("click", () => this.useOwn());
    form.append(use, back);
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  // The settings in the form that the worker uses.
  settings() {
    const set = Object.fromEntries(SLIDERS.map(({ name }) => [name, Number(byId("sliders").elements[name].value)]));
    return { ...set, alpha: Number((10 ** set.strength).toPrecision(6)) };
  }

  tellSettings(settings) {
    const texts = { ...settings, strength: settings.alpha.toPrecision(2) };
    for (const { name, step } of SLIDERS) {
      const output = byId("sliders").elements[name].closest("label").querySelector("output");
      output.textContent = typeof texts[name] === "string" ? Number(texts[name]).toString() : texts[name].toFixed(step < 1 ? 2 : 0);
    }
  }

  open() {
    if (!this.opened) this.moved();
    this.opened = true;
  }

  // Run one training at a time; of the settings made meanwhile, only the last are trained next.
  async moved() {
    this.lastMove = performance.now();
    this.tellSettings(this.settings());
    byId("code").textContent = this.code();
    if (this.running) {
      this.again = true;
      return;
    }
    this.running = true;
    do {
      this.again = false;
      await this.train();
    } while (this.again);
    this.running = false;
  }

  embed(settings) {
    return Promise.all(this.workers.map((worker, k) => worker.ask("embed", { settings, share: { k, of: this.workers.length } })));
  }

  async train() {
    const settings = this.settings(), start = this.lastMove, begin = performance.now();
    const shares = await this.embed(settings), embedding = performance.now() - begin;
    const result = await this.workers[0].ask("train", { settings, shares }), { readout, all: rest } = result.times;
    this.result = { ...result, times: { embedding, readout, all: embedding + rest } };
    this.show(this.result);
    const all = performance.now() - start;
    byId("train").dataset.milliseconds = all.toFixed(1);
    byId("train").dataset.trained = JSON.stringify(settings);
    this.cards(this.result, all);
  }

  cards(result, milliseconds) {
    const { graphs } = this.stage.content, n = graphs.list.length;
    const card = (value, words) => element("div", {}, element("p", { class: "value" }, value), element("p", {}, words));
    const made = result.accuracy === null
      ? [card("–", "The readout has no solution with this regularization strength: give a larger one.")]
      : [card(`${(100 * result.accuracy).toFixed(1)} %`, `accuracy, ${this.training.n_folds}-fold cross-validation; majority class: ${(100 * this.training.majority).toFixed(1)} %`)];
    made.push(card(`${result.contractions.filter((c) => c < 1).length} of ${n}`, "graphs are certified to have one fixed point"));
    made.push(card(`${milliseconds.toFixed(0)} ms`, `from slider to here: graphs ${result.times.embedding.toFixed(0)}, readout ${result.times.readout.toFixed(0)}`));
    byId("train-cards").replaceChildren(...made);
  }

  show(result) {
    this.showMap(result);
    const beyond = result.contractions.filter((c) => !(c < 1)).length;
    histogram(byId("stability"), result.contractions, { across: "ρ(|W|) ρ(A) of each graph", words: `Histogram of the contraction of ${result.contractions.length} graphs; ${beyond} are at 1 or above` });
    byId("stability-words").textContent = `Left of 1 a graph has one fixed point. ${beyond ? `${beyond} graphs are beyond: there the paper's loop runs for at most 50 iterations.` : "All graphs are there."}`;
  }

  showMap({ places, shares, right }) {
    const svg = byId("map"), { examples } = this.stage, xs = places.map((p) => p[0]), ys = places.map((p) => p[1]);
    const [wide, high] = [xs, ys].map((all) => Math.max(...all.map(Math.abs), 1e-9));
    const scale = 180 / Math.max(wide, high), half = Math.max(110, high * scale + 20);
    svg.setAttribute("viewBox", `-200 ${-half} 400 ${2 * half}`);
    svg.replaceChildren(...places.map(([x, y], g) => {
      const { answer } = examples[g], kind = right && !right[g] ? " wrong" : "";
      const point = shape("path", {
        d: SIGNS[answer % SIGNS.length], transform: `translate(${(x * scale).toFixed(1)} ${(-y * scale).toFixed(1)})`,
        class: `point${kind}`, style: `fill: var(--c${(answer % 7) + 1})`,
      });
      point.dataset.graph = g;
      point.append(shape("title", {}, `graph ${examples[g].id}, ${this.stage.truthOf(g)}${kind ? ", wrong prediction" : ""}`));
      return point;
    }));
    const key = this.stage.content.graphs.classes.map((name, c) => {
      const sign = shape("svg", { viewBox: "-6 -6 12 12" });
      sign.append(shape("path", { d: SIGNS[c % SIGNS.length], style: `fill: var(--c${(c % 7) + 1})` }));
      return element("li", {}, sign, `class ${this.stage.nameOfClass(name)}`);
    });
    const outlined = shape("svg", { viewBox: "-6 -6 12 12" });
    outlined.append(shape("path", { d: SIGNS[0], style: "fill: none; stroke: var(--ink); stroke-width: 1.6px" }));
    byId("map-key").replaceChildren(...key, element("li", {}, outlined, "wrong out-of-fold prediction"));
    byId("map-words").textContent = `Two principal components of the features, with ${shares.map((s) => `${(100 * s).toFixed(0)} %`).join(" and ")} of the variance. A click opens the graph.`;
  }

  showGraph(target) {
    const { graph } = target.dataset;
    if (graph === undefined) return;
    this.stage.show(Number(graph));
    this.openPlay();
  }

  // ------------------------------------------------------------------ the trained model

  async use() {
    const settings = this.settings(), shares = await this.embed(settings);
    const weights = await this.workers[0].ask("weights", { settings, shares });
    if (!weights) return;
    const { graphs } = this.stage.content;
    const kind = { ...this.stage.kind, labels: graphs.labels, n_inputs: graphs.labels?.length ?? this.stage.kind.n_inputs };
    const details = { kind, classes: this.stage.content.graphs.classes };
    this.stage.use(trainedModel(weights, details));
    byId("use-own").hidden = false;
    this.tellTrained();
    this.onUse?.(weights, details);
    this.openPlay();
  }

  tellTrained() {
    const { depth, units } = this.settings(), layers = depth === 1 ? "one layer" : `${depth} layers`;
    byId("summary").textContent = `Change a graph and see the prediction: now of the model that was trained in this page (${layers} of ${units} units). The Train tab leads back to the page's own model.`;
  }

  useOwn() {
    this.stage.use(this.stage.own);
    byId("use-own").hidden = true;
    byId("summary").textContent = this.summary;
    this.onUse?.(null, {});
    this.openPlay();
  }

  // Python that gives the same reservoir, readout and cross-validation accuracy.
  code() {
    const { depth, units, rho, omega1, omega, alpha, seed } = this.settings();
    return [
      "import numpy as np",
      "from sklearn.linear_model import Ridge",
      "from sklearn.model_selection import StratifiedKFold, cross_val_predict",
      ...this.training.code, "",
      "model = FDGNNClassifier(",
      `    n_layers=${depth}, n_units=${units}, effective_spectral_radius=${rho}, input_scaling=${omega1},`,
      `    inter_layer_scaling=${omega}, alpha=${alpha}, random_state=${seed}, tol=1e-9,`,
      ").fit(graphs, y)", "",
      "# Cross-validation accuracy of the readout, as on the page",
      "X = model.estimators_[0].features(graphs)",
      "targets = np.where(y[:, None] == model.classes_, 1.0, -1.0)",
      `folds = StratifiedKFold(${this.training.n_folds}, shuffle=True, random_state=0)`,
      `ridge = Ridge(alpha=${alpha}, solver="svd")`,
      "outputs = cross_val_predict(ridge, X, targets, cv=list(folds.split(X, y)))",
      'print("cross-validation accuracy", (model.classes_[outputs.argmax(axis=1)] == y).mean())',
    ].join("\n");
  }
}
