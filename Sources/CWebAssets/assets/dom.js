// SPDX-License-Identifier: Apache-2.0

// Builds elements without markup: text from outside stays text.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element: h("a", {href: "#/"}, "text", …). */
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

/** An SVG element. */
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

/** Sets a text only if it differs: that keeps the user's selection. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Sets or removes an attribute only if it differs. */
export function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

/** A table with these heads; a head is a text, or [text, class]. */
export function table(heads, rows, props = {}) {
  const head = heads.map((text) => h("th", { scope: "col", class: Array.isArray(text) ? text[1] : null }, [text].flat()[0]));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": props.label ?? "Table" },
    h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}

/** A card with a heading; `tools` stand beside the heading. */
export function card(title, body, ...tools) {
  return h("section", { class: "card", "aria-label": title },
    h("header", {}, h("h2", {}, title), tools.length ? h("span", { class: "grow" }) : null, tools), body);
}

let tip;
/** Shows a tooltip at a position; no text hides it. */
export function showTip(text, x, y) {
  tip ??= document.body.appendChild(h("div", { class: "tip", "aria-hidden": "true" }));
  tip.hidden = !text;
  if (!text) return;
  setText(tip, text);
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(6, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18}px`;
}

/** Whether the page is in its dark theme: the one that was chosen, else the system's. */
export function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
