// Graphs that people type: SMILES where graphs are molecules, else lists of edges.

import { withAromaticRings } from "./aromaticity.js";
import { byId, element } from "./elements.js";
import { place } from "./placing.js";
import { noEdges, readEdges, ReadingError, readSmiles } from "./reading.js";
import { atomsOf, Sketch, withGivenAtoms } from "./sketch.js";

const SMILES_HELP = "A SMILES: atoms B C N O P S F Cl Br I and [brackets], bonds, branches, rings, charges. Stereo marks are passed over.";
const EDGES_HELP = "A list of edges: 0-1 1-2 2-0, or two names per line.";
const LABELS_HELP = " A vertex may say its label after a colon, once: ";

export function pasting(stage, start) {
  const text = byId("text"), problem = byId("paste-problem");
  const labels = stage.kind.vertices === "labels" && !stage.rules;
  const example = labels ? exampleWith(stage) : "";
  byId("paste-summary").textContent = stage.rules ? "Type a SMILES" : "Type a graph";
  byId("paste-what").textContent = stage.rules ? SMILES_HELP : EDGES_HELP + (labels ? LABELS_HELP + example : "");
  text.placeholder = stage.rules ? "CC(=O)Oc1ccccc1C(=O)O" : example || "0-1 1-2 2-0";
  byId("paste").addEventListener("submit", (event) => {
    event.preventDefault();
    problem.textContent = "";
    try {
      const { sketch, note } = read(stage, text.value);
      start(sketch);
      problem.textContent = note ?? "";
    } catch (error) {
      if (!(error instanceof ReadingError)) throw error;
      problem.textContent = error.message;
    }
  });
}

function exampleWith(stage) {
  const [a, b = a] = (stage.palette.labels ?? []).slice(0, 2).map((label) => stage.labelName(label));
  return a === undefined ? "" : `0:${a}-1:${b} 1-2:${a} 2-0`;
}

// A sketch from what was typed; raises ReadingError with the reason if it is none.
export function read(stage, text) {
  if (!stage.rules) return plain(stage, text);
  if (/\s/.test(text.trim())) throw new ReadingError("That is no SMILES: it must be one word, such as CCO.");
  const written = readSmiles(text), { atoms, bonds } = withAromaticRings(written.atoms, written.bonds);
  const places = place(atoms.length, bonds.map((b) => [b.u, b.v]));
  const vertices = atoms.map((atom, v) => ({ x: places[v][0], y: places[v][1], atom }));
  const bare = new Sketch(vertices, bonds, false);
  checkBonds(bare, written.atoms);
  const notes = [];
  if (stage.rules.standardize) notes.push("The model's molecules were standardized before it saw them; this one is taken as it is.");
  if (stage.rules.stereo && /[@/\\]/.test(text)) notes.push("The model knows stereo, which this page cannot work out: it is left out.");
  return { sketch: withGivenAtoms(bare), note: notes.join(" ") };
}

// Refuse atoms outside of brackets that have more bonds than they can, as Python does.
function checkBonds(sketch, written) {
  const v = atomsOf(sketch).findIndex(({ over }, i) => over && written[i].hydrogens === null);
  if (v < 0) return;
  const { element, bonds } = atomsOf(sketch)[v];
  throw new ReadingError(`This SMILES is no molecule: its atom ${v}, ${element}, has bonds for ${bonds}, more than it can have. Charges stand in brackets, as in C[N+](=O)[O-].`);
}

function plain(stage, text) {
  const { names, labels, edges } = readEdges(text), { palette, kind } = stage;
  const places = place(names.length, edges);
  const byName = new Map((palette.labels ?? []).map((label) => [stage.labelName(label), label]));
  const known = new Map((palette.labels ?? []).map((label) => [String(label), label]));
  const named = (name) => byName.get(name.replace(/[\d_]+$/, "")); // C1 and C2 are named after the label C
  const alone = (name, v) => /^\d+$/.test(name) || labels[v] !== null || named(name) !== undefined;
  if (!edges.length && !names.every(alone)) throw noEdges(text);
  let n_bare = 0;
  const labelOf = (word, name) => {
    if (kind.vertices !== "labels") return null;
    if (word === null && named(name) === undefined) n_bare += 1;
    if (word === null) return named(name) ?? palette.labels[0];
    const found = byName.get(word) ?? known.get(word);
    if (found === undefined) throw new ReadingError(`The model knows no vertex label “${word}”; it knows ${[...byName.keys()].slice(0, 12).join(", ")}.`);
    return found;
  };
  const edgeLabel = palette.edgeLabels?.[Math.max(0, palette.edgeLabels.findIndex((l) => stage.edgeLabelName(l) === "single"))] ?? null;
  let sketch = new Sketch(names.map((name, v) => ({
    x: places[v][0], y: places[v][1], label: labelOf(labels[v], name), features: palette.features,
  })), [], kind.directed);
  for (const [u, v] of edges) sketch = sketch.withEdge({ u, v, label: edgeLabel, weight: palette.weighted ? 1 : null });
  const taken = n_bare ? stage.labelName(palette.labels[0]) : "";
  return { sketch, note: n_bare ? `${n_bare === 1 ? "One vertex says" : `${n_bare} vertices say`} no label after a colon, and ${n_bare === 1 ? "is" : "are"} taken as “${taken}”.` : "" };
}

// The notes below the canvas.
export function noted(stage) {
  const notes = [...stage.content.notes];
  if (stage.rules) {
    notes.push("After a change the page works out neighbors, hydrogens and rings of each atom as the model reads them. It does not look for aromatic rings again: a bond is aromatic until you change it"
      + (stage.rules.atoms === "rich" ? ", and hybridization is estimated from the bonds." : "."));
  }
  if (stage.kind.vertices === "features" && !stage.rules) notes.push("Vertices carry numbers, which the page keeps as they are. A new vertex has those of the vertex it is added to.");
  stage.listeners.push(({ moved }) => {
    if (moved) return;
    byId("notes").replaceChildren(...[...unseenNotes(stage), ...notes].map((text) => element("p", { class: "note" }, text)));
  });
}

// What is told of labels that the model has not seen, but takes.
function unseenNotes(stage) {
  const { unseen = [], unseenEdges = [], graph } = stage.explanation;
  if (unseen.length && graph?.labels && [...graph.labels].every((label) => unseen.includes(label))) {
    return ["The model has seen none of these vertex labels: it knows nothing about this graph, and its answer means nothing."];
  }
  return [
    ...unseenNote("vertex", unseen.map((label) => stage.labelName(label))),
    ...unseenNote(stage.molecule ? "bond" : "edge", unseenEdges.map((label) => stage.edgeLabelName(label))),
  ];
}

function unseenNote(what, labels) {
  if (!labels.length) return [];
  const several = labels.length > 1, names = labels.slice(0, 8).map((label) => `“${label}”`).join(", ");
  const more = labels.length > 8 ? ` and ${labels.length - 8} more` : "";
  return [`The model has not seen the ${what} label${several ? "s" : ""} ${names}${more}: it knows nothing about ${several ? "these" : "it"}, so the answer rests on the rest of the graph.`];
}
