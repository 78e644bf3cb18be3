// Looks values up that the library computed; nothing is computed here.
"use strict";

function explore(section) {
  const data = JSON.parse(section.querySelector("script[type='application/json']").textContent);
  const sliders = Array.from(section.querySelectorAll("input[data-dial]"));
  const outputs = Array.from(section.querySelectorAll("[data-output]"));
  const status = section.querySelector("[data-status]");

  function show() {
    const at = { dial: data.own[0], delta: data.own[1] };
    for (const slider of sliders) {
      at[slider.dataset.dial] = Number(slider.value);
    }
    for (const slider of sliders) {
      const which = slider.dataset.dial;
      const value = data[which][at[which]];
      slider.setAttribute("aria-valuetext", value);
      section.querySelector("[data-shown='" + which + "']").textContent = value;
    }
    const found = data.found[at.dial][at.delta];
    status.textContent = found[0];
    outputs.forEach((output, place) => {
      output.textContent = found[place + 1] || "–";
    });
  }

  for (const slider of sliders) {
    slider.addEventListener("input", show);
  }
  // A browser may remember where a slider stood.
  show();
}

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

document.querySelectorAll(".explorer").forEach(explore);
followTheme();
followPrinter();
