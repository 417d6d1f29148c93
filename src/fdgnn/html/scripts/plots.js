// Small charts as SVG, in units of pixels.

import { shape } from "./elements.js";

const WIDTH = 420, HEIGHT = 190, LEFT = 46, BOTTOM = 34, TOP = 22;

function frame(svg, words) {
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("class", "plot");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", words);
  svg.replaceChildren(
    shape("line", { x1: LEFT, y1: TOP, x2: LEFT, y2: HEIGHT - BOTTOM, class: "axis" }),
    shape("line", { x1: LEFT, y1: HEIGHT - BOTTOM, x2: WIDTH - 6, y2: HEIGHT - BOTTOM, class: "axis" }));
}

const text = (x, y, words, anchor = "middle") => {
  const made = shape("text", { x, y, "text-anchor": anchor }, words);
  return made;
};

// Curves on a logarithmic scale: [{values, marked}], and a line at step `now` and at height `limit`.
export function curves(svg, all, { now = null, limit = null, across, up, words }) {
  frame(svg, words);
  const most = Math.max(2, ...all.map((c) => c.values.length));
  const logs = all.flatMap((c) => c.values).filter((v) => v > 0).map(Math.log10);
  const low = Math.floor(Math.min(...logs, limit ? Math.log10(limit) : 0)), high = Math.ceil(Math.max(...logs, low + 1));
  const x = (i) => LEFT + ((WIDTH - LEFT - 12) * i) / (most - 1);
  const y = (v) => TOP + ((HEIGHT - BOTTOM - TOP) * (high - Math.log10(Math.max(v, 10 ** low)))) / (high - low);
  for (const { values, marked } of [...all].sort((a, b) => a.marked - b.marked)) {
    const points = values.map((v, i) => `${x(i).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
    svg.append(shape("polyline", { points, class: `curve${marked ? "" : " other"}` }));
  }
  if (limit) svg.append(shape("line", { x1: LEFT, x2: WIDTH - 6, y1: y(limit), y2: y(limit), class: "limit" }));
  if (now !== null) svg.append(shape("line", { x1: x(now), x2: x(now), y1: TOP, y2: HEIGHT - BOTTOM, class: "now" }));
  for (let power = low; power <= high; power += Math.max(1, Math.ceil((high - low) / 4))) {
    svg.append(text(LEFT - 5, y(10 ** power) + 4, `1e${power}`, "end"));
  }
  svg.append(text(x(0), HEIGHT - BOTTOM + 15, "1"), text(x(most - 1), HEIGHT - BOTTOM + 15, String(most)));
  svg.append(text((LEFT + WIDTH) / 2, HEIGHT - 4, across), text(LEFT - 5, 10, up, "start"));
}

// How many values fall into each of `n` columns from 0 to `top`, with a line at 1.
export function histogram(svg, values, { across, words, n = 30 }) {
  frame(svg, words);
  const top = Math.max(1.25, Math.ceil(Math.max(...values) * 4) / 4), counts = new Array(n).fill(0);
  for (const value of values) counts[Math.min(n - 1, Math.floor((value / top) * n))] += 1;
  const most = Math.max(...counts, 1), wide = (WIDTH - LEFT - 12) / n;
  const x = (v) => LEFT + ((WIDTH - LEFT - 12) * v) / top;
  counts.forEach((count, i) => {
    const height = ((HEIGHT - BOTTOM - TOP - 6) * count) / most;
    const beyond = (i + 0.5) / n > 1 / top;
    svg.append(shape("rect", { x: LEFT + i * wide + 0.5, y: HEIGHT - BOTTOM - height, width: wide - 1, height, class: `column${beyond ? " beyond" : ""}` }));
  });
  svg.append(shape("line", { x1: x(1), x2: x(1), y1: TOP, y2: HEIGHT - BOTTOM, class: "limit" }));
  svg.append(text(x(1), HEIGHT - BOTTOM + 15, "1"), text(x(0), HEIGHT - BOTTOM + 15, "0"), text(x(top), HEIGHT - BOTTOM + 15, String(top)));
  svg.append(text(LEFT - 5, TOP + 8, String(most), "end"), text((LEFT + WIDTH) / 2, HEIGHT - 4, across), text(LEFT - 5, 10, "graphs", "start"));
}

// Columns of numbers between −1 and 1 as colors; `color` gives red, green, blue of a number.
export function heat(canvas, rows, columns, value, color) {
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  for (let r = 0; r < rows; r++)
    for (let c = 0; c < columns; c++) image.data.set([...color(value(r, c)), 255], 4 * (r * columns + c));
  context.putImageData(image, 0, 0);
}
