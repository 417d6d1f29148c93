// The playground: a model that runs in the page, and requests to workers, which run beside it.

import { byId, choosable, root, tabbed, themed } from "./elements.js";
import { structureOf, unpack, unzip } from "./graphs.js";
import { modelOf } from "./model.js";
import { Play } from "./play.js";
import { noted, read, Stage } from "./stage.js";
import { Train } from "./train.js";
import { Effects, flipping, tellTable } from "./verdict.js";
import { Watch } from "./watch.js";

export class Background {
  // `source` is the worker's script; `buffer` its first message, a copy of the page's content.
  constructor(source, buffer) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, progress, result } }) => {
      const waiting = this.waiting.get(id);
      if (!waiting) return;
      if (result === undefined) waiting.progress?.(progress);
      else {
        this.waiting.delete(id);
        waiting.resolve(result);
      }
    };
    this.ask("load", { buffer });
  }

  ask(task, details = {}, progress = null) {
    const id = ++this.count;
    const answer = new Promise((resolve) => this.waiting.set(id, { resolve, progress }));
    this.worker.postMessage({ id, task, ...details });
    return answer;
  }

  // Cancel the running request.
  cancel() {
    this.waiting.clear();
    this.worker.postMessage({ id: ++this.count, task: "nothing" });
  }
}

// ---------------------------------------------------------------------- playground

// Workers that train: one for each processor that the browser reports, at most four.
const TRAINERS = Math.max(1, Math.min(4, navigator.hardwareConcurrency || 2));

function fillExamples(stage) {
  const entries = stage.examples.map(({ id }, g) => [g, [id, stage.truthOf(g)].filter(Boolean).join(": ")]);
  choosable(byId("example"), byId("before"), byId("after"), entries, (g) => stage.show(g));
}

function begin(stage) {
  if (stage.examples.length) stage.show(0);
  else {
    const { palette, rules } = stage;
    const label = palette.labels?.length ? stage.labelName(palette.labels[0]) : "";
    const triangle = label && !/[\s:,;-]/.test(label) ? `0:${label}-1:${label} 1-2:${label} 2-0` : "0-1 1-2 2-0";
    stage.start(read(stage, rules ? "CC(=O)Oc1ccccc1C(=O)O" : triangle).sketch);
  }
}

async function main() {
  themed(byId("theme"));
  const buffer = await unzip(byId("page-data").textContent);
  const { content, arrays } = unpack(buffer);
  const stage = new Stage(content, modelOf(content.model.record, arrays, content.model));
  const source = byId("worker").textContent, background = () => new Background(source, buffer.slice(0));
  const effects = new Effects(stage, background), play = new Play(stage, effects), watch = new Watch(stage), tester = background();
  flipping(stage, play, tester);
  fillExamples(stage);
  noted(stage);
  byId("table-of-vertices").addEventListener("toggle", () => tellTable(stage));
  let train = null;
  const open = tabbed((name) => {
    if (name === "watch") watch.open();
    else watch.pause();
    if (name === "train") {
      train ??= new Train(stage, Array.from({ length: TRAINERS }, background), () => open("play"));
      train.onUse = (weights, details) => {
        tester.ask("use", { weights, ...details });
        effects.use({ weights, ...details });
      };
      train.open();
    }
  });
  begin(stage);
  byId("starting").hidden = true;
  byId("content").hidden = false;
  play.fit();
  // For the console, and for tests.
  window.playground = { stage, play, watch, structureOf, get train() { return train; }, read: (text) => read(stage, text) };
  root.dataset.ready = "yes";
}

main().catch((error) => {
  byId("starting").textContent = `The page could not be started: ${error.message}`;
  throw error;
});
