// Elements of pages, and functions that all pages share. Text from data files reaches a page by textContent only.

export const root = document.documentElement;
export const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
export const byId = (id) => document.getElementById(id);
export const SVG = "http://www.w3.org/2000/svg";

// Grapheme clusters: an emoji is several characters, and must not be cut.
export const letters = (text) => typeof Intl.Segmenter === "function"
  ? Array.from(new Intl.Segmenter().segment(text), (part) => part.segment) : Array.from(text);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function shape(name, attributes = {}, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Make a button copy the result of `text`, and confirm it.
export function copies(button, text) {
  const name = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = name; }, 2000);
  });
}

// A select element with buttons for the previous and the next entry. Return a function that selects by number.
export function choosable(list, before, after, entries, chosen) {
  list.append(...entries.map(([value, text]) => element("option", { value }, text)));
  const step = (by) => {
    const now = Math.max(0, list.selectedIndex);
    chosen(entries[(now + by + entries.length) % entries.length][0]);
  };
  list.addEventListener("change", () => chosen(entries[list.selectedIndex][0]));
  before.addEventListener("click", () => step(-1));
  after.addEventListener("click", () => step(1));
  for (const button of [before, after]) button.disabled = entries.length < 2;
  list.disabled = !entries.length;
}

const MOST_ROWS = 200;

// A table of vertices by attribution, the largest first; `cellsOf(value, v)` returns the numbers of a row.
export function vertexTable(names, values, labelOf, cellsOf) {
  const row = (tag, cells, attributes = {}) => element("tr", {}, ...cells.map((cell) => element(tag, attributes, cell)));
  const order = Array.from(values, (value, v) => [v, value]).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  const rows = order.slice(0, MOST_ROWS).map(([v, value]) => {
    const made = row("td", [String(v), labelOf(v)]);
    made.append(...row("td", cellsOf(value, v), { class: "number" }).children);
    return made;
  });
  return element("table", {}, element("thead", {}, row("th", names, { scope: "col" })), element("tbody", {}, ...rows));
}

// ---------------------------------------------------------------------- number formats

// A number with this many significant digits.
export const written = (value, digits = 5) => `${value < 0 ? "−" : ""}${Number(Math.abs(value).toPrecision(digits))}`;

// A number with its sign; the minus is as wide as a plus.
export const signed = (value, digits = 3) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;

// ---------------------------------------------------------------------- theme and tabs

export function themed(button) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => root.dataset.theme || (dark.matches ? "dark" : "light");

  function tell() {
    const other = theme() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to the ${other} theme`);
  }

  button.addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("fdgnn-theme", root.dataset.theme);
    } catch (error) {
      // This browser has no storage for files on disk.
    }
    tell();
  });
  dark.addEventListener("change", tell);
  button.hidden = false;
  tell();
}

// Tabs, selected by click or by arrow keys.
export function tabbed(opened) {
  const tabs = all("[role=tab]");
  const open = (tab) => {
    for (const each of tabs) {
      const chosen = each === tab;
      each.setAttribute("aria-selected", String(chosen));
      each.tabIndex = chosen ? 0 : -1;
      byId(each.getAttribute("aria-controls")).hidden = !chosen;
    }
    opened(tab.getAttribute("aria-controls"));
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => open(tab));
    tab.addEventListener("keydown", ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      if (!step) return;
      const next = tabs[(i + step + tabs.length) % tabs.length];
      next.focus();
      open(next);
    });
  });
  return (name) => open(tabs.find((tab) => tab.getAttribute("aria-controls") === name));
}
