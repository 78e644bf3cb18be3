// The theme, and what paper needs.
"use strict";

function followTheme() {
  const choice = document.getElementById("theme");
  choice.closest("label").hidden = false;
  choice.addEventListener("change", () => {
    if (choice.value === "auto") {
      delete document.documentElement.dataset.theme;
    } else {
      document.documentElement.dataset.theme = choice.value;
    }
  });
}

// Paper has no folds, and is light.
function followPrinter() {
  let folded = [];
  let theme;
  window.addEventListener("beforeprint", () => {
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    folded.forEach((part) => { part.open = true; });
    theme = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    folded.forEach((part) => { part.open = false; });
    if (theme === undefined) {
      delete document.documentElement.dataset.theme;
    } else {
      document.documentElement.dataset.theme = theme;
    }
  });
}

followTheme();
followPrinter();
