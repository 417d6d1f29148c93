// Before anything is shown: the theme that was chosen last time, so that nothing flashes.
"use strict";
try {
  const theme = localStorage.getItem("fdgnn-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch (error) {
  // This browser stores nothing for files on disk; its own setting decides.
}
document.documentElement.dataset.script = "yes";
