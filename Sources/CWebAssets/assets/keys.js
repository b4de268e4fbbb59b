// SPDX-License-Identifier: Apache-2.0

// Keyboard shortcuts.
import { ask, closeMenus } from "./actions.js";
import { h } from "./dom.js";

const KEYS = [
  [["1", "…", "8"], "the pages, in the order above"], [["/"], "filter"], [["j", "k"], "next and previous app"], [["Enter"], "open the app"],
  [["t"], "dark or light"], [["Esc"], "leave the filter, close what is open"], [["←", "→"], "step through a lane's states, in a timeline"], [["?"], "this"],
];

export function help() {
  const list = KEYS.flatMap(([keys, text]) => [h("dt", {}, keys.flatMap((key, index) => [index ? " " : "", key === "…" ? key : h("kbd", {}, key)])), h("dd", {}, text)]);
  return ask("Keyboard", h("dl", { class: "keys" }, list), [["", "Close", "primary"]]);
}

/** Moves the focus by `step` rows. */
function move(step) {
  const names = [...document.querySelectorAll("tr.row .name")];
  if (!names.length) return;
  const now = names.findIndex((name) => name.closest("tr").contains(document.activeElement));
  names[now < 0 ? (step > 0 ? 0 : names.length - 1) : Math.max(0, Math.min(names.length - 1, now + step))].focus();
}

/** Installs the shortcuts; `pages` are the addresses for the keys 1, 2, …, `toggle` changes the theme. */
export function listen(pages, toggle) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(document.activeElement?.tagName);
    if (event.key === "Escape") {
      if (!closeMenus() && isTyping) document.activeElement.blur();
      return;
    }
    if (isTyping) {
      if (event.key === "ArrowDown" && document.activeElement.id === "filter") { event.preventDefault(); move(1); }
      return;
    }
    const page = pages[Number(event.key) - 1];
    if (page) location.hash = page;
    else if (event.key === "/") { document.getElementById("filter")?.focus(); event.preventDefault(); }
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "t") toggle();
    else if (event.key === "?") help();
  });
}
