// The prediction for the graph: its class or number, and below it words, bars and a table.

import { byId, element, shape, signed, vertexTable, written } from "./elements.js";
import { applied, inWords, touched } from "./sketch.js";

const percent = (p) => `${(100 * p).toFixed(p > 0.995 || p < 0.005 ? 1 : 0)} %`;

export function told(stage) {
  const { answer, more } = verdictOf(stage);
  byId("verdict").replaceChildren(...answer);
  byId("verdict-more").replaceChildren(...more);
  tellTable(stage);
}

function verdictOf(stage) {
  const { explanation, model } = stage, words = (...children) => element("p", {}, ...children);
  if (explanation.empty) return { answer: [element("h2", {}, "No graph")], more: [words("Add a vertex, or choose a graph.")] };
  if (explanation.refused) {
    const names = explanation.refused.slice(0, 4).map((label) => `“${stage.labelName(label)}”`).join(", ");
    const why = `The model was not trained on graphs with the vertex label ${names}, and was fitted to refuse such graphs.`;
    return { answer: [element("h2", {}, "No answer")], more: [element("p", { class: "problem" }, why)] };
  }
  const n = explanation.vertices.length, many = stage.molecule ? "atoms" : "vertices";
  const added = `${signed(explanation.base)} for an empty graph, and ${signed(explanation.score - explanation.base)} from ${n === 1 ? `its ${stage.vertexWord}` : `its ${n} ${many}, ${signed(stage.meanVertex)} each on average`}.`;
  const truth = stage.truthOf(stage.example), known = truth && !stage.history.entry.edited ? [words(`In the data: ${truth}.`)] : [];
  if (!model.classes) {
    const numbers = explanation.outputs.map((y) => written(y)).join(", ");
    return { answer: [element("h2", {}, numbers), words("is the model's number")], more: [...known, words(`It adds up: ${added}`)] };
  }
  const { outputs, probabilities } = explanation, winner = model.winner(outputs);
  const score = `score ${signed(Math.max(...outputs))}${outputs.length === 1 ? `, above 0 for class ${stage.className(1)}` : ""}`;
  const facts = [...(probabilities ? [`probability ${percent(probabilities[winner])}`] : []), score];
  return {
    answer: [element("h2", {}, `Class ${stage.className(winner)}`), words(facts.join(", "))],
    more: [...known, classBars(stage, winner), words(`For class ${stage.className(winner)} the score is ${signed(explanation.score)}: ${added}`)],
  };
}

function classBars(stage, winner) {
  const { explanation: { outputs, probabilities }, model } = stage, bars = element("div", { class: "bars" });
  model.classes.forEach((_, c) => {
    const own = outputs.length === 1 ? (c ? outputs[0] : -outputs[0]) : outputs[c];
    const share = probabilities ? probabilities[c] : (own + 1) / 2; // position of an output between −1 and +1
    const text = probabilities ? percent(share) : signed(own, 2);
    const bar = element("span", { class: `bar${c === winner ? " first" : ""}`, "aria-hidden": "true" }, element("i", {}));
    bar.firstChild.style.width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
    bars.append(element("b", {}, stage.className(c)), bar, element("span", {}, text));
  });
  return bars;
}

export function tellTable(stage) {
  const { explanation } = stage, place = byId("attributions");
  if (!byId("table-of-vertices").open || !explanation.vertices) {
    place.replaceChildren();
    return;
  }
  const { labels } = explanation.graph, mean = stage.meanVertex;
  place.replaceChildren(vertexTable([stage.vertexWord, "label", "adds", "beside the mean"], explanation.vertices,
    (v) => (labels ? stage.labelName(labels[v]) : "–"), (value) => [value, value - mean].map((number) => signed(number, 4))));
}

// ---------------------------------------------------------------------- effects

// Values of vertices: attributions, or leave-one-out effects. The latter need a prediction for each vertex, in a
// worker.

export class Effects {
  constructor(stage, makeBackground) {
    this.stage = stage;
    this.makeBackground = makeBackground;
    this.found = new WeakMap(); // leave-one-out effects by explanation
    this.listeners = [() => this.tellKey()];
    byId("shows-what").textContent = stage.molecule ? "Atoms show" : "Vertices show";
    byId("table-words").textContent = `Table: what each ${stage.vertexWord} adds`;
    byId("shows").addEventListener("change", () => this.tell());
    stage.listeners.push(({ moved }) => {
      if (moved) return;
      if (this.without) this.tell();
      else this.tellKey();
    });
  }

  get without() {
    return byId("shows").value === "without";
  }

  // A value for each vertex on the canvas; null if there are none yet.
  get values() {
    const { explanation, sketch } = this.stage, known = this.without ? this.found.get(explanation) : explanation.vertices;
    return known?.length === sketch.vertices.length ? known : null;
  }

  // Colored values: attributions relative to their mean, as in pictures of explanations. The common part would give
  // all vertices the same color.
  get painted() {
    const { values } = this, mean = values && !this.without ? this.stage.meanVertex : 0;
    return values && values.map((value) => value - mean);
  }

  async tell() {
    const { explanation } = this.stage;
    if (this.without && explanation.vertices && !this.found.has(explanation)) {
      this.background ??= this.makeBackground();
      const { graph, target } = explanation;
      this.found.set(explanation, await this.background.ask("without", { graph, target, latest: true }));
    }
    for (const listener of this.listeners) listener();
  }

  // The number of a vertex in words.
  inWords(v) {
    const value = this.values?.[v];
    if (value === undefined) return "";
    if (this.without) return `${this.stage.scoreWord} loses ${signed(value)} without it`;
    const beside = this.painted[v];
    return `adds ${signed(value)}, ${Math.abs(beside).toFixed(3)} ${beside < 0 ? "less" : "more"} than the mean`;
  }

  tellKey() {
    const { stage, without } = this, { explanation, vertexWord, scoreWord } = stage;
    if (!explanation.vertices) {
      byId("key").replaceChildren();
      return;
    }
    const [red, blue] = without ? [`${scoreWord} falls without it`, "rises"]
      : [`adds more to ${scoreWord} than the mean ${vertexWord}, ${signed(stage.meanVertex)}`, "adds less"];
    byId("key").replaceChildren(element("li", {}, sign("for"), red), element("li", {}, sign("against"), blue));
  }

  // Called when the model is replaced, or the page's own model is restored.
  use(details) {
    this.background?.ask("use", details);
  }
}

function sign(kind) {
  const svg = shape("svg", { viewBox: "-6 -6 12 12", class: "graph" });
  svg.append(shape("circle", { r: 4.6, class: `vertex ${kind}`, "fill-opacity": 0.5 }));
  return svg;
}

// ---------------------------------------------------------------------- counterfactuals

export function flipping(stage, play, background) {
  const button = byId("flip"), progress = byId("flip-progress"), list = byId("flips");
  const classes = Boolean(stage.model.classes);
  const question = classes ? "What is the smallest change that changes the class?" : "Which single change moves the number most?";
  let running = false;
  button.textContent = question;

  function stop() {
    if (running) background.cancel();
    running = false;
    button.textContent = question;
    progress.textContent = "";
  }

  // Results belong to one graph: they are removed when it changes.
  stage.listeners.push(({ moved }) => {
    if (moved) return;
    stop();
    button.disabled = !stage.explanation.outputs;
    list.replaceChildren();
  });

  button.addEventListener("click", async () => {
    if (running) {
      stop();
      return;
    }
    running = true;
    button.textContent = "Stop";
    list.replaceChildren();
    progress.textContent = "Trying single changes …";
    const { sketch, palette, kind, rules } = stage;
    const asked = { sketch: { vertices: sketch.vertices, edges: sketch.edges, directed: sketch.directed }, palette, kind, rules };
    const found = await background.ask("flip", asked, (share) => {
      progress.textContent = `Trying single changes: ${Math.round(100 * share)} %`;
    });
    running = false;
    button.textContent = question;
    show(found);
  });

  function names() {
    return {
      vertex: (v) => stage.vertexInWords(v), label: (x) => (stage.rules ? x : stage.labelName(x)),
      edge: (x) => stage.edgeLabelName(x), bond: stage.molecule ? "bond" : "edge",
    };
  }

  function show({ tried, n, winner }) {
    const flips = classes ? tried.filter(({ answer }) => answer !== winner) : [];
    if (!n) progress.textContent = "There is no single change to try.";
    else if (flips.length) progress.textContent = `${n} single changes tried. These flip the class, the strongest first:`;
    else if (classes) progress.textContent = `${n} single changes tried: none changes the class. These come nearest:`;
    else progress.textContent = `${n} single changes tried. These move the number most:`;
    const before = stage.sketch;
    list.replaceChildren(...(flips.length ? flips : tried).slice(0, 6).map(({ edit, outputs, answer, change }) => {
      const words = inWords(edit, before, names());
      const result = classes
        ? `${answer === winner ? "still" : "then"} class ${stage.className(answer)}: changes the ${outputs.length > 1 ? "lead" : "score"} of class ${stage.className(winner)} by ${signed(change, 2)}`
        : `${written(outputs[0], 4)}: changes the number by ${signed(change)}`;
      const apply = element("button", { type: "button" }, words, element("small", {}, result));
      const mark = (on) => () => {
        play.changed = new Set(on ? touched(edit, before) : []);
        play.paint();
      };
      apply.addEventListener("pointerenter", mark(true));
      apply.addEventListener("pointerleave", mark(false));
      apply.addEventListener("focus", mark(true));
      apply.addEventListener("blur", mark(false));
      apply.addEventListener("click", () => {
        play.change(applied(before, edit, stage.palette), null);
        play.fit();
        byId("canvas").focus();
      });
      return element("li", {}, apply);
    }));
  }
}
