// "What is the smallest change that flips the class?": all single changes are tried, beside the page.

import { applied, inWords, touched } from "./edits.js";
import { byId, element } from "./elements.js";
import { signed, written } from "./numbers.js";

export function flipping(stage, play, background) {
  const button = byId("flip"), progress = byId("flip-progress"), list = byId("flips");
  const classes = Boolean(stage.model.classes);
  const question = classes ? "What is the smallest change that flips the class?" : "Which single change moves the number most?";
  let running = false;
  button.textContent = question;

  function stop() {
    if (running) background.cancel();
    running = false;
    button.textContent = question;
    progress.textContent = "";
  }

  // An answer is about one graph: when the graph changes, it is gone.
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
    else if (classes) progress.textContent = `${n} single changes tried: none flips the class. These come nearest:`;
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
