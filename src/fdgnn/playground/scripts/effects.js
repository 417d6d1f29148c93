// What vertices show: what each adds to the score, or what the score loses without it. The second takes a run of the
// model for each vertex, beside the page.

import { byId } from "./elements.js";

export class Effects {
  constructor(stage, makeBackground) {
    this.stage = stage;
    this.makeBackground = makeBackground;
    this.found = new WeakMap(); // from explanations to what the score loses
    this.listeners = [];
    byId("shows").addEventListener("change", () => this.tell());
    stage.listeners.push(({ moved }) => { if (!moved && this.without) this.tell(); });
  }

  get without() {
    return byId("shows").value === "without";
  }

  // A number for each vertex of the graph on the canvas; nothing where there is none yet.
  get values() {
    const { explanation, sketch } = this.stage, known = this.without ? this.found.get(explanation) : explanation.vertices;
    return known?.length === sketch.vertices.length ? known : null;
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

  // Another model was taken, or the page's own again.
  use(details) {
    this.background?.ask("use", details);
  }
}
