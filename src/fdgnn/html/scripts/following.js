// The paper's loop for layers with one connection per neuron, where there may be several states at rest, or none.
//
// Neurons on a cycle read nobody else, so each cycle is followed alone. Any other neuron has after t steps what the
// neuron that it reads makes of t - 1 steps: only its last few states are needed, as many as the neurons that hang on
// it ask for. If a cycle comes to rest, one state is enough.

import { squashRow } from "./reservoir.js";
import { sumNeighbors } from "./structure.js";

// The states after `most` steps from zero, to X, which is zero. A cycle that moves by less than `still` is at rest.
// `roomFor(size)` gives an array to work in.
export function follow(layer, structure, D, most, still, X, roomFor) {
  const { n } = structure, { sources, values } = layer.recurrent, lags = (layer.lags ??= lagsOf(layer));
  const n_rows = lags.reduce((sum, lag) => sum + lag + 1, 0), room = roomFor(n_rows * n).fill(0, 0, n_rows * n);
  const rows = new Array(layer.H); // rows[h][l] is where A x[h] is, l steps before the last; just one where h is at rest
  const step = (h, row) => squashRow(D, h * n, values[h], room, row, X, h * n, n);
  const sum = (h, row) => sumNeighbors(structure, X, h * n, room, row);
  let used = 0;
  for (let h = 0; h < layer.H; h++) rows[h] = Array.from({ length: lags[h] + 1 }, () => n * used++);
  for (const { neurons, cycles } of layer.parts) {
    if (cycles) {
      for (let t = 0, change = Infinity; t < most && change > still; t++) {
        change = 0;
        for (const h of neurons) change = Math.max(change, step(h, rows[sources[h]][0]));
        for (const h of neurons) {
          rows[h].unshift(rows[h].pop());
          sum(h, rows[h][0]);
        }
        if (change <= still) for (const h of neurons) rows[h].length = 1;
      }
    } else {
      const [h] = neurons, before = rows[sources[h]];
      if (before.length === 1) rows[h].length = 1;
      for (let l = Math.min(rows[h].length, most) - 1; l >= 0; l--) {
        step(h, before[Math.min(l + 1, before.length - 1)]);
        if (layer.read[h]) sum(h, rows[h][l]);
      }
    }
  }
}

// How many states before the last are asked for, of each neuron.
function lagsOf({ H, parts, recurrent: { sources } }) {
  const lags = new Int32Array(H);
  for (const { neurons: [h], cycles } of [...parts].reverse()) {
    if (!cycles) lags[sources[h]] = Math.max(lags[sources[h]], lags[h] + 1);
  }
  return lags;
}
