// What the model says of the graph: the answer, and below it words, bars and a table.

import { byId, element } from "./elements.js";
import { signed, written } from "./numbers.js";

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
  const added = `${signed(explanation.base)} for an empty graph, and ${signed(explanation.score - explanation.base)} from ${n === 1 ? `its ${stage.vertexWord}` : `its ${n} ${many}, ${signed(stage.meanVertex)} each in the mean`}.`;
  const truth = stage.truthOf(stage.example), known = truth && !stage.history.entry.edited ? [words(`In the data: ${truth}.`)] : [];
  if (!model.classes) {
    const numbers = explanation.outputs.map((y) => written(y)).join(", ");
    return { answer: [element("h2", {}, numbers), words("is the model's number")], more: [...known, words(`It adds up: ${added}`)] };
  }
  const { outputs, probabilities } = explanation, winner = model.winner(outputs);
  const facts = [...(probabilities ? [`probability ${percent(probabilities[winner])}`] : []), `score ${signed(explanation.score)}`];
  return {
    answer: [element("h2", {}, `Class ${stage.className(winner)}`), words(facts.join(", "))],
    more: [...known, classBars(stage, winner), words(`The score adds up: ${added}`)],
  };
}

function classBars(stage, winner) {
  const { explanation: { outputs, probabilities }, model } = stage, bars = element("div", { class: "bars" });
  model.classes.forEach((_, c) => {
    const share = probabilities ? probabilities[c] : barOf(outputs, c);
    const text = probabilities ? percent(share) : signed(outputs.length === 1 ? (c ? outputs[0] : -outputs[0]) : outputs[c], 2);
    const bar = element("span", { class: `bar${c === winner ? " first" : ""}`, "aria-hidden": "true" }, element("i", {}));
    bar.firstChild.style.width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
    bars.append(element("b", {}, stage.className(c)), bar, element("span", {}, text));
  });
  return bars;
}

// Without probabilities: how far an output is from −1 to +1.
function barOf(outputs, c) {
  const own = outputs.length === 1 ? (c ? outputs[0] : -outputs[0]) : outputs[c];
  return (own + 1) / 2;
}

export function tellTable(stage) {
  const { explanation } = stage, place = byId("contributions");
  if (!byId("table-of-vertices").open || !explanation.vertices) {
    place.replaceChildren();
    return;
  }
  const mean = stage.meanVertex;
  const order = [...explanation.vertices].map((value, v) => [v, value]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const head = element("tr", {}, ...[stage.vertexWord, "label", "adds", "beside the mean"].map((text) => element("th", { scope: "col" }, text)));
  const rows = order.slice(0, 200).map(([v, value]) => element("tr", {},
    element("td", {}, String(v)),
    element("td", {}, explanation.graph.labels ? stage.labelName(explanation.graph.labels[v]) : "–"),
    ...[value, value - mean].map((number) => element("td", { class: "number" }, signed(number, 4)))));
  place.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}
