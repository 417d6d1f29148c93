// Long computations beside the page: counterfactuals and training.

import { graphsOf, kindOf, unpack } from "./graphs.js";
import { modelOf } from "./model.js";
import { applied, graphOf, singleEdits, Sketch } from "./sketch.js";
import { trainedModel, Trainer } from "./training.js";

let content = null, arrays = null, model = null, trainer = null, newest = 0;

const pause = () => new Promise((resolve) => setTimeout(resolve));

// The margin of the predicted class: its score minus the best other score; with one output, its score.
function margin(outputs, winner, classes) {
  if (!classes) return outputs[winner];
  if (outputs.length === 1) return winner ? outputs[0] : -outputs[0];
  return outputs[winner] - Math.max(...outputs.filter((_, q) => q !== winner));
}

// Try all single changes, report progress, and return those that change the predicted class or come nearest to it.
async function tryEdits({ id, sketch, palette, kind, rules }) {
  const start = new Sketch(sketch.vertices, sketch.edges, sketch.directed);
  const scored = (one) => model.outputs(graphOf(one, kind, rules));
  const before = scored(start), winner = model.winner(before), first = margin(before, winner, model.classes);
  const edits = singleEdits(start, palette), tried = [];
  for (let i = 0; i < edits.length; i++) {
    const graph = graphOf(applied(start, edits[i], palette), kind, rules);
    if (!model.unseen(graph, true).length) {
      const outputs = model.outputs(graph);
      const left = margin(outputs, winner, model.classes);
      tried.push({ edit: edits[i], outputs, answer: model.winner(outputs), left, change: left - first });
    }
    if (i % 20 === 19) {
      postMessage({ id, progress: (i + 1) / edits.length });
      await pause();
      if (newest !== id) return;
    }
  }
  const order = model.classes ? (a, b) => a.left - b.left : (a, b) => Math.abs(b.change) - Math.abs(a.change);
  tried.sort(order);
  postMessage({ id, result: { tried: tried.slice(0, 8), n: tried.length, winner, first } });
}

const tasks = {
  load({ buffer }) {
    ({ content, arrays } = unpack(buffer));
    model = modelOf(content.model.record, arrays, content.model);
    if (content.training) trainer = new Trainer(graphsOf(content), content, kindOf(content.graphs));
    return true;
  },
  use({ weights, kind, classes }) {
    model = weights ? trainedModel(weights, { kind, classes }) : modelOf(content.model.record, arrays, content.model);
    return true;
  },
  embed: ({ settings, share }) => trainer.embed(settings, share),
  train: ({ settings, shares }) => trainer.train(settings, shares),
  weights: ({ settings, shares }) => trainer.weights(settings, shares),
  without: ({ graph, target }) => model.vertexEffects(graph, target),
  flip: tryEdits,
  nothing: () => undefined,
};

self.onmessage = async ({ data }) => {
  newest = data.id;
  await pause(); // so that a newer request of the same kind can replace this one
  if (data.latest && newest !== data.id) return;
  const result = await tasks[data.task](data);
  if (result !== undefined) postMessage({ id: data.id, result });
};
