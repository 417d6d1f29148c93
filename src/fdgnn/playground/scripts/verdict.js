// What the model says of the graph, in words, bars and a table.

import { byId, element } from "./elements.js";
import { signed } from "./numbers.js";

const percent = (p) => `${(100 * p).toFixed(p > 0.995 || p < 0.005 ? 1 : 0)} %`;

export function told(stage) {
  const { explanation, model } = stage, place = byId("verdict");
  if (explanation.empty) place.replaceChildren(element("h2", {}, "No graph"), element("p", {}, "Add a vertex, or choose a graph."));
  else if (explanation.refused) {
    const names = explanation.refused.slice(0, 4).map((label) => `“${stage.labelName(label)}”`).join(", ");
    place.replaceChildren(element("h2", {}, "No answer"),
      element("p", { class: "problem" }, `The model was not trained on graphs with the vertex label ${names}, and was fitted to refuse such graphs.`));
  } else place.replaceChildren(...(model.classes ? classParts(stage) : numberParts(stage)));
  tellTable(stage);
}

function classParts(stage) {
  const { explanation, model } = stage, { outputs, probabilities } = explanation;
  const winner = model.winner(outputs), sure = probabilities?.[winner];
  const truth = stage.example !== null && stage.history.place === 0 ? stage.examples[stage.example].answer : null;
  const told = [];
  if (probabilities) told.push(`probability ${percent(sure)}`);
  told.push(`score ${signed(explanation.score)}`);
  const parts = [element("h2", {}, `Class ${stage.className(winner)}`), element("p", {}, told.join(", "))];
  const known = stage.content.training?.classes ?? model.classes;
  if (truth !== null && truth >= 0 && known) {
    parts.push(element("p", {}, `In the data it is of class ${String(known[truth])}.`));
  }
  const bars = element("div", { class: "bars" });
  model.classes.forEach((name, c) => {
    const share = probabilities ? probabilities[c] : barOf(outputs, c);
    const text = probabilities ? percent(share) : signed(outputs.length === 1 ? (c ? outputs[0] : -outputs[0]) : outputs[c], 2);
    const bar = element("span", { class: `bar${c === winner ? " first" : ""}`, "aria-hidden": "true" }, element("i", {}));
    bar.firstChild.style.width = `${(100 * Math.min(1, Math.max(0, share))).toFixed(1)}%`;
    bars.append(element("b", {}, String(name)), bar, element("span", {}, text));
  });
  parts.push(bars);
  parts.push(element("p", { class: "note" }, `The vertices add up: ${signed(explanation.base)} for an empty graph, and ${signed(explanation.score - explanation.base)} from ${explanation.vertices.length === 1 ? "its vertex" : `its ${explanation.vertices.length} vertices`}.`));
  return parts;
}

// Without probabilities: how far an output is from −1 to +1.
function barOf(outputs, c) {
  const own = outputs.length === 1 ? (c ? outputs[0] : -outputs[0]) : outputs[c];
  return (own + 1) / 2;
}

function numberParts({ explanation }) {
  return [
    element("h2", {}, explanation.outputs.map((y) => y.toPrecision(5)).join(", ")),
    element("p", {}, `${explanation.base.toPrecision(4)} for an empty graph, and ${signed(explanation.score - explanation.base)} from the vertices.`),
  ];
}

function tellTable(stage) {
  const { explanation } = stage, place = byId("contributions");
  if (!byId("table-of-vertices").open || !explanation.vertices) {
    place.replaceChildren();
    return;
  }
  const order = [...explanation.vertices].map((value, v) => [v, value]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const head = element("tr", {}, ...["vertex", "label", "adds"].map((text) => element("th", { scope: "col" }, text)));
  const rows = order.slice(0, 200).map(([v, value]) => element("tr", {},
    element("td", {}, String(v)),
    element("td", {}, explanation.graph.labels ? stage.labelName(explanation.graph.labels[v]) : "–"),
    element("td", { class: "number" }, signed(value, 4))));
  place.replaceChildren(element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}
