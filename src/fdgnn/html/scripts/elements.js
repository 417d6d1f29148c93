// Elements of the page. Text from data files reaches the page by textContent only.

export const root = document.documentElement;
export const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
export const byId = (id) => document.getElementById(id);
export const SVG = "http://www.w3.org/2000/svg";

// What a reader sees as one letter: an emoji is several characters, and must not be cut.
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

// Put text on the clipboard.
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch (error) {
    // Some browsers let only pages from the network use the clipboard, so the older way is used.
    const field = element("textarea", { class: "away", readonly: "" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

// Let a button copy what `text` gives, and say that it did.
export function copies(button, text) {
  const name = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await copy(text());
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = name; }, 2000);
  });
}
