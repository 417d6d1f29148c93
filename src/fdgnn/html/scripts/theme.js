// The button that switches between the light and the dark theme.

import { root } from "./elements.js";

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
      // This browser stores nothing for files on disk.
    }
    tell();
  });
  dark.addEventListener("change", tell);
  button.hidden = false;
  tell();
}
