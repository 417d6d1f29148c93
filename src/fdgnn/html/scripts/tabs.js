import { all, byId } from "./elements.js";

// The tabs, by click and by arrows.
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
