// What vertices show: what each adds to the score, or what the score loses without it. The second takes a run of the
// model for each vertex, beside the page.

import { byId, element, shape } from "./elements.js";
import { signed } from "./numbers.js";

export class Effects {
  constructor(stage, makeBackground) {
    this.stage = stage;
    this.makeBackground = makeBackground;
    this.found = new WeakMap(); // from explanations to what the score loses
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

  // A number for each vertex of the graph on the canvas; nothing where there is none yet.
  get values() {
    const { explanation, sketch } = this.stage, known = this.without ? this.found.get(explanation) : explanation.vertices;
    return known?.length === sketch.vertices.length ? known : null;
  }

  // What colors show: what a vertex adds beside the mean one, as pictures of explanations do. What all add alike would
  // paint them all alike.
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

  // Another model was taken, or the page's own again.
  use(details) {
    this.background?.ask("use", details);
  }
}

function sign(kind) {
  const svg = shape("svg", { viewBox: "-6 -6 12 12", class: "graph" });
  svg.append(shape("circle", { r: 4.6, class: `vertex ${kind}`, "fill-opacity": 0.5 }));
  return svg;
}
