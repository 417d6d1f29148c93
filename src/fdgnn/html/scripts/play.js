// The first tab: the canvas, the selection on it, and the prediction.

import { draw, windowOf } from "./drawing.js";
import { byId, element } from "./elements.js";
import { freePlace, place } from "./layout.js";
import { applied, BOND_NAMES, newEdge, newVertex } from "./sketch.js";
import { pasting } from "./stage.js";
import { told } from "./verdict.js";

export class Play {
  constructor(stage, effects) {
    this.stage = stage;
    this.effects = effects;
    this.svg = byId("canvas");
    this.chosen = null; // {v} or {e}
    this.from = undefined; // where an edge begins
    this.changed = new Set();
    this.fillPens();
    this.listen();
    pasting(stage, (sketch) => stage.start(sketch));
    stage.listeners.push(({ moved }) => this.refresh(moved));
    effects.listeners.push(() => {
      this.paint();
      this.tellChosen();
    });
  }

  get tool() {
    return document.querySelector("#tools input:checked").value;
  }

  // ------------------------------------------------------------------ pens: labels of new vertices and edges

  fillPens() {
    const { palette } = this.stage, pen = byId("pen"), bond = byId("bond");
    const options = palette.molecules ? palette.elements.map((e) => [e, e]) : (palette.labels ?? []).map((l, i) => [i, this.stage.labelName(l)]);
    pen.replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
    byId("pen-label").hidden = options.length === 0;
    const edges = palette.molecules ? [...BOND_NAMES] : (palette.edgeLabels ?? []).map((l, i) => [i, this.stage.edgeLabelName(l)]);
    bond.replaceChildren(...edges.map(([value, text]) => element("option", { value }, text)));
    byId("bond-label").hidden = edges.length === 0;
    const single = edges.findIndex(([, text]) => text === "single");
    if (single >= 0) bond.selectedIndex = single;
  }

  labelFields(value) {
    const { palette } = this.stage;
    return palette.molecules ? { element: value } : { label: palette.labels ? palette.labels[Number(value)] : null };
  }

  edgeFields(value) {
    const { palette } = this.stage;
    return palette.molecules ? { order: Number(value) } : { label: palette.edgeLabels ? palette.edgeLabels[Number(value)] : null };
  }

  // ------------------------------------------------------------------ changes

  change(sketch, chosen = this.chosen, more = {}) {
    this.chosen = chosen;
    this.changed = new Set();
    this.stage.change(sketch, more);
  }

  addAt(x, y) {
    const { sketch, palette } = this.stage;
    this.change(sketch.withVertex(newVertex(x, y, palette, this.labelFields(byId("pen").value))), { v: sketch.vertices.length });
    this.fit();
  }

  addNeighbor(v) {
    const { sketch, palette } = this.stage, n = sketch.vertices.length;
    const [x, y] = freePlace(sketch.vertices, v);
    const grown = sketch.withVertex(newVertex(x, y, palette, this.labelFields(byId("pen").value), sketch.vertices[v]));
    this.change(this.aromaticEnds(grown.withEdge(newEdge(v, n, palette, this.edgeFields(byId("bond").value)))), { v: n });
    this.fit();
  }

  connect(u, v) {
    const { sketch, palette } = this.stage;
    if (u === v) return;
    const found = sketch.find(u, v);
    if (found >= 0) this.choose({ e: found });
    else this.change(this.aromaticEnds(sketch.withEdge(newEdge(u, v, palette, this.edgeFields(byId("bond").value)))), { e: sketch.edges.length });
  }

  // The ends of an aromatic bond are aromatic.
  aromaticEnds(sketch) {
    if (!this.stage.rules) return sketch;
    const ends = new Set(sketch.edges.filter((e) => e.order === 1.5).flatMap((e) => [e.u, e.v]));
    return sketch.withVertices((vertex, v) => (ends.has(v) && !vertex.atom.aromatic
      ? { ...vertex, atom: { ...vertex.atom, aromatic: true } } : vertex));
  }

  remove({ v, e }) {
    const { sketch } = this.stage;
    this.change(v !== undefined ? sketch.withoutVertex(v) : sketch.withoutEdge(e), null);
  }

  relabel(v, value) {
    this.change(applied(this.stage.sketch, { kind: "relabel", v, ...this.labelFields(value) }, this.stage.palette));
  }

  recharge(v, charge) {
    const { sketch } = this.stage, { atom } = sketch.vertices[v];
    this.change(sketch.relabeled(v, { atom: { ...atom, charge } }));
  }

  retype(e, value) {
    const fields = this.edgeFields(value);
    this.change(this.aromaticEnds(this.stage.sketch.changedEdge(e, { label: null, ...fields })));
  }

  choose(chosen) {
    this.chosen = chosen;
    this.changed = new Set();
    this.refresh(true);
    this.tellChosen();
  }

  undo(way) {
    this.stage.history[way]();
    this.chosen = null;
    this.changed = new Set();
    this.stage.tell();
    this.fit();
  }

  fit() {
    this.window = windowOf(this.stage.sketch.vertices);
    this.paint();
  }

  layOut() {
    const { sketch } = this.stage;
    const places = place(sketch.vertices.length, sketch.edges.map((e) => [e.u, e.v]));
    this.change(sketch.withVertices((vertex, v) => ({ ...vertex, x: places[v][0], y: places[v][1] })), this.chosen, { moved: true });
    this.fit();
  }

  // ------------------------------------------------------------------ showing

  refresh(moved) {
    const { sketch, history } = this.stage;
    const gone = this.chosen && (this.chosen.v >= sketch.vertices.length || this.chosen.e >= sketch.edges.length);
    if (gone) this.chosen = null;
    if (this.shown !== history.entry.first) {
      this.shown = history.entry.first;
      this.chosen = null;
      this.window = windowOf(sketch.vertices);
      if (this.stage.example !== null) byId("example").value = String(this.stage.example);
      else byId("example").selectedIndex = -1;
    }
    byId("undo").disabled = history.place === 0;
    byId("redo").disabled = history.place === history.past.length - 1;
    byId("reset").disabled = history.untouched;
    this.paint();
    if (!moved) {
      told(this.stage);
      this.tellChosen();
    }
  }

  paint() {
    const { stage } = this, { sketch } = stage, values = this.effects.painted;
    draw(this.svg, sketch, {
      ...stage.view, window: this.window, editable: true, numbered: byId("numbered").checked,
      values, most: values ? Math.max(...[...values].map(Math.abs), 1e-12) : 1,
      titleOf: (v) => this.vertexWords(v), chosen: this.chosen, from: this.from, pointer: this.pointer, changed: this.changed,
    });
    this.svg.setAttribute("aria-label", `The graph: ${sketch.vertices.length} vertices, ${sketch.edges.length} edges`);
  }

  vertexWords(v) {
    return [this.stage.vertexInWords(v), this.effects.inWords(v)].filter(Boolean).join(": ");
  }

  // The strip below the canvas: the selection, and the actions on it.
  tellChosen() {
    const { stage, chosen } = this, strip = byId("strip");
    if (!chosen) {
      strip.replaceChildren(element("span", { class: "quiet-words" }, stage.sketch.vertices.length
        ? `Choose ${stage.molecule ? "an atom or a bond" : "a vertex or an edge"} to change it.` : "Nothing is here: choose Add and touch the ground."));
      return;
    }
    const remove = element("button", { type: "button" }, "Delete");
    remove.addEventListener("click", () => {
      this.remove(chosen);
      this.svg.focus();
    });
    strip.replaceChildren(...(chosen.v !== undefined ? this.vertexTools(chosen.v) : this.edgeTools(chosen.e)), remove);
  }

  vertexTools(v) {
    const { stage } = this, parts = [element("strong", {}, this.vertexWords(v))];
    const options = [...byId("pen").options].map((o) => [o.value, o.textContent]);
    const vertex = stage.sketch.vertices[v];
    if (options.length) {
      const now = stage.rules ? vertex.atom.element : stage.palette.labels.indexOf(vertex.label);
      if (!options.some(([value]) => value === String(now))) options.unshift([String(now), stage.nameOf(v)]);
      parts.push(choice("relabel", stage.rules ? "element" : "label", options, String(now), (value) => this.relabel(v, value)));
    }
    if (stage.rules) {
      const charges = [-1, 0, 1].map((c) => [String(c), c === 0 ? "none" : c > 0 ? "+1" : "−1"]);
      parts.push(choice("recharge", "charge", charges, String(vertex.atom.charge), (value) => this.recharge(v, Number(value))));
      parts.push(element("span", { class: "quiet-words" }, stage.atomFacts(v).join(", ")));
    }
    return parts;
  }

  edgeTools(e) {
    const { stage } = this, edge = stage.sketch.edges[e];
    const parts = [element("strong", {}, `${stage.vertexInWords(edge.u)} – ${stage.vertexInWords(edge.v)}`)];
    const options = [...byId("bond").options].map((o) => [o.value, o.textContent]);
    if (options.length) {
      const now = stage.rules ? edge.order : stage.palette.edgeLabels.indexOf(edge.label);
      parts.push(choice("relabel", stage.molecule ? "bond" : "label", options, String(now), (value) => this.retype(e, value)));
    }
    return parts;
  }

  // ------------------------------------------------------------------ mouse and touch

  at(event) {
    const matrix = this.svg.getScreenCTM().inverse();
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
    return [x, y];
  }

  listen() {
    const { svg } = this;
    svg.addEventListener("pointerdown", (event) => this.press(event));
    svg.addEventListener("keydown", (event) => this.key(event));
    byId("undo").addEventListener("click", () => this.undo("undo"));
    byId("redo").addEventListener("click", () => this.undo("redo"));
    byId("reset").addEventListener("click", () => this.undo("reset"));
    byId("layout").addEventListener("click", () => this.layOut());
    byId("numbered").addEventListener("change", () => this.paint());
    document.addEventListener("keydown", (event) => {
      const typing = ["TEXTAREA", "INPUT"].includes(event.target.tagName) && event.target.type !== "radio";
      if (typing || byId("play").hidden || !(event.ctrlKey || event.metaKey)) return;
      const name = event.key.toLowerCase();
      if (name === "z" && !event.shiftKey) this.undo("undo");
      else if (name === "y" || (name === "z" && event.shiftKey)) this.undo("redo");
      else return;
      event.preventDefault();
    });
  }

  press(event) {
    if (event.button) return;
    const { vertex, edge } = event.target.dataset, { tool } = this;
    this.svg.focus({ preventScroll: true });
    if (vertex !== undefined) {
      event.preventDefault();
      const v = Number(vertex);
      if (tool === "delete") this.remove({ v });
      else if (tool === "add") this.addNeighbor(v);
      else this.drag(event, v, tool === "connect");
    } else if (edge !== undefined) {
      if (tool === "delete") this.remove({ e: Number(edge) });
      else this.choose({ e: Number(edge) });
    } else if (tool === "add") this.addAt(...this.at(event));
    else this.choose(null);
  }

  // Follow the pointer from vertex v: move it, or draw an edge from it.
  drag(event, v, connecting) {
    const { svg, stage } = this, before = stage.sketch, start = this.at(event);
    let moved = false;
    this.choose({ v });
    if (connecting) this.from = v;
    const follow = (next) => {
      const [x, y] = this.at(next);
      moved ||= Math.hypot(x - start[0], y - start[1]) > 0.08;
      if (!moved) return;
      if (connecting) {
        this.pointer = [x, y];
        this.paint();
      } else {
        const { x: x0, y: y0 } = before.vertices[v];
        stage.change(before.moved(v, x0 + x - start[0], y0 + y - start[1]), { record: false, moved: true });
      }
    };
    const stop = (next) => {
      svg.removeEventListener("pointermove", follow);
      svg.removeEventListener("pointerup", stop);
      svg.removeEventListener("pointercancel", stop);
      this.from = this.pointer = undefined;
      if (connecting) this.endEdge(v, moved ? this.at(next) : null);
      else if (moved) {
        const after = stage.sketch;
        stage.history.replace(before);
        this.change(after, { v }, { moved: true });
        this.tellChosen();
      }
    };
    svg.setPointerCapture(event.pointerId);
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerup", stop);
    svg.addEventListener("pointercancel", stop);
  }

  endEdge(v, at) {
    if (!at) { // two touches instead of a drag: the first vertex waits for the second
      if (this.waiting !== undefined && this.waiting !== v) {
        this.connect(this.waiting, v);
        this.waiting = undefined;
      } else this.waiting = v;
      this.paint();
      return;
    }
    this.waiting = undefined;
    const { vertices } = this.stage.sketch;
    const near = vertices.findIndex((w, u) => u !== v && Math.hypot(w.x - at[0], w.y - at[1]) < 0.42);
    if (near >= 0) this.connect(v, near);
    else this.paint();
  }

  // ------------------------------------------------------------------ keyboard

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { chosen, stage } = this, v = chosen?.v;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (arrows[event.key] && event.shiftKey && v !== undefined) this.nudge(v, arrows[event.key]);
    else if (arrows[event.key]) this.go(arrows[event.key]);
    else if (name === "a") {
      if (v !== undefined) this.addNeighbor(v);
      else this.addAt(this.window.x + this.window.width / 2, this.window.y + this.window.height / 2);
    } else if (name === "c" && v !== undefined) {
      this.from = this.from === undefined ? v : undefined;
      this.paint();
    } else if (name === "Enter" && this.from !== undefined && v !== undefined) {
      const { from } = this;
      this.from = undefined;
      this.connect(from, v);
    } else if (name === "Escape") {
      this.from = undefined;
      this.choose(null);
    } else if (name === "e" && chosen) this.nextEdge();
    else if (name === "l" && chosen) byId("strip").querySelector("select")?.focus();
    else if ((name === "Delete" || name === "Backspace") && chosen) this.remove(chosen);
    else return;
    event.preventDefault();
    if (!stage.sketch.vertices.length) this.from = undefined;
  }

  // Select the nearest vertex in a direction; vertices to the side count as farther.
  go([dx, dy]) {
    const { vertices } = this.stage.sketch;
    if (!vertices.length) return;
    const v = this.chosen?.v ?? (this.chosen ? this.stage.sketch.edges[this.chosen.e].u : undefined);
    if (v === undefined) {
      this.choose({ v: 0 });
      return;
    }
    let best = v, least = Infinity;
    vertices.forEach((w, u) => {
      const x = w.x - vertices[v].x, y = w.y - vertices[v].y, ahead = x * dx + y * dy;
      if (u === v || ahead <= 0.05) return;
      const cost = ahead + 2.5 * Math.abs(x * dy - y * dx);
      if (cost < least) [best, least] = [u, cost];
    });
    this.choose({ v: best });
  }

  nudge(v, [dx, dy]) {
    const { x, y } = this.stage.sketch.vertices[v];
    this.change(this.stage.sketch.moved(v, x + 0.2 * dx, y + 0.2 * dy), { v }, { moved: true });
  }

  nextEdge() {
    const { edges } = this.stage.sketch, { v, e } = this.chosen;
    const around = v ?? this.around;
    const own = edges.flatMap((edge, i) => (edge.u === around || edge.v === around ? [i] : []));
    if (!own.length) return;
    this.around = around;
    this.choose({ e: own[(own.indexOf(e) + 1) % own.length] });
  }
}

function choice(name, words, options, now, changed) {
  const list = element("select", { name }, ...options.map(([value, text]) => element("option", { value }, text)));
  list.value = now;
  list.addEventListener("change", () => {
    changed(list.value);
    byId("canvas").focus({ preventScroll: true }); // the list disappears with the change
  });
  return element("label", {}, `${words} `, list);
}
