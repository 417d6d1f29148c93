// Set the theme that was chosen last time before the page is painted.
"use strict";
try {
  const theme = localStorage.getItem("fdgnn-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch (error) {
  // This browser has no storage for files on disk; use its own setting.
}
document.documentElement.dataset.script = "yes";
