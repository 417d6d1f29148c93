// The paper's loop for layers with one connection per neuron, where there may be several states at rest, or none.
//
// Neurons on a cycle read nobody else, so each cycle is followed alone. Any other neuron has after t steps what the
// neuron that it reads makes of t - 1 steps: only its last few states are needed, as many as the neurons that hang on
// it ask for. If a cycle comes to rest, one state is enough.

import { squashRow } from "./reservoir.js";
import { sumNeighbors } from "./structure.js";

// The states after `most` steps from zero, to X, which is zero. A cycle that moves by less than `still` is at rest.
export function follow(layer, structure, D, most, still, X) {
  const { n } = structure, { sources, values } = layer.recurrent, lags = lagsOf(layer);
  const sums = new Array(layer.H); // sums[h][l] is A x[h], l steps before the last; just one where h is at rest
  const step = (h, S) => squashRow(D, h * n, values[h], S, 0, X, h * n, n);
  for (const { neurons, cycles } of layer.parts) {
    for (const h of neurons) sums[h] = Array.from({ length: lags[h] + 1 }, () => new Float64Array(n));
    if (!cycles) {
      const [h] = neurons, before = sums[sources[h]];
      if (before.length === 1) sums[h].length = 1;
      for (let l = Math.min(sums[h].length, most) - 1; l >= 0; l--) {
        step(h, before[Math.min(l + 1, before.length - 1)]);
        sumNeighbors(structure, X, h * n, sums[h][l], 0);
      }
      continue;
    }
    for (let t = 0, change = Infinity; t < most && change > still; t++) {
      change = Math.max(...neurons.map((h) => step(h, sums[sources[h]][0])));
      for (const h of neurons) {
        sums[h].unshift(sums[h].pop());
        sumNeighbors(structure, X, h * n, sums[h][0], 0);
      }
      if (change <= still) for (const h of neurons) sums[h].length = 1;
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
