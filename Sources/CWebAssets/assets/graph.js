// SPDX-License-Identifier: Apache-2.0

// The dependency graph in layers, dependencies at the left.
import { h, s } from "./dom.js";
import { WORDS, shown, symbol } from "./states.js";
import { get, on, store } from "./store.js";

const WIDE = 158, TALL = 52, GAP_X = 78, GAP_Y = 18;

/** Places each app in a layer after all apps that it requires or starts after; cycles are cut. */
function layers(nodes) {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const depth = new Map();
  const visit = (node, path) => {
    if (depth.has(node.name)) return depth.get(node.name);
    if (path.has(node.name)) return 0;
    path.add(node.name);
    const before = [...node.requires, ...node.after].map((name) => byName.get(name)).filter(Boolean);
    const value = before.length ? 1 + Math.max(...before.map((other) => visit(other, path))) : 0;
    path.delete(node.name);
    depth.set(node.name, value);
    return value;
  };
  nodes.forEach((node) => visit(node, new Set()));
  const columns = [];
  for (const node of nodes) (columns[depth.get(node.name)] ??= []).push(node);
  // Move nodes close to their dependencies: sort by the mean position of the dependencies, in a few rounds.
  const place = new Map();
  columns.forEach((column) => column.forEach((node, index) => place.set(node.name, index)));
  for (let round = 0; round < 3; round += 1) {
    for (const column of columns.slice(1)) {
      const mean = (node) => {
        const before = [...node.requires, ...node.after].filter((name) => place.has(name));
        return before.reduce((all, name) => all + place.get(name), 0) / Math.max(1, before.length);
      };
      column.sort((a, b) => mean(a) - mean(b) || a.name.localeCompare(b.name, "en", { numeric: true }));
      column.forEach((node, index) => place.set(node.name, index));
    }
  }
  return columns;
}

export function graph(main) {
  const box = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph of dependencies" }, h("p", { class: "empty" }, "…"));
  const alone = h("p", { class: "muted small" });
  const nodes = new Map();
  main.append(h("div", { class: "head" }, h("h1", {}, "Dependencies"), h("p", { class: "muted" }, "Apps on the left start first. Solid: required. Dashed: only the order.")),
    h("section", { class: "card", "aria-label": "Dependencies" }, box, alone));

  function draw(list) {
    const used = new Set(list.flatMap((node) => [...node.requires, ...node.after]));
    const joined = list.filter((node) => used.has(node.name) || node.requires.length || node.after.length);
    const columns = layers(joined);
    const rows = Math.max(1, ...columns.map((column) => column.length));
    const height = rows * (TALL + GAP_Y) + 20;
    const width = columns.length * (WIDE + GAP_X) - GAP_X + 20;
    const spot = new Map();
    columns.forEach((column, x) => {
      const top = (height - column.length * (TALL + GAP_Y) + GAP_Y) / 2;
      column.forEach((node, y) => spot.set(node.name, [10 + x * (WIDE + GAP_X), top + y * (TALL + GAP_Y)]));
    });
    const svg = s("svg", { class: "chart graph", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Dependencies" });
    svg.style.width = `${width}px`;
    svg.style.height = `${height}px`;
    svg.style.margin = "0 auto";
    svg.append(s("defs", {}, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
      s("path", { class: "arrow", d: "M0 0l8 4-8 4Z" }))));
    for (const node of joined) {
      for (const [names, look] of [[node.requires, "edge"], [node.after, "edge after"]]) {
        for (const name of names) {
          if (!spot.has(name)) continue;
          const [x1, y1] = [spot.get(name)[0] + WIDE, spot.get(name)[1] + TALL / 2];
          const [x2, y2] = [spot.get(node.name)[0] - 2, spot.get(node.name)[1] + TALL / 2];
          const bend = Math.max(30, (x2 - x1) / 2);
          svg.append(s("path", { class: look, "marker-end": "url(#arrow)", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }));
        }
      }
    }
    nodes.clear();
    for (const node of joined) {
      const [x, y] = spot.get(node.name);
      const sign = s("g", { transform: `translate(${x + 12} ${y + 18})` });
      const word = s("text", { class: "word", x: x + 36, y: y + 39 });
      const element = s("a", { class: "node", href: `#/app/${encodeURIComponent(node.name)}` }, s("rect", { x, y, width: WIDE, height: TALL, rx: 10 }),
        sign, s("text", { x: x + 36, y: y + 22 }, node.name.length > 15 ? `${node.name.slice(0, 14)}…` : node.name), word);
      const describe = [node.requires.length ? `requires ${node.requires.join(", ")}` : "", node.after.length ? `comes after ${node.after.join(", ")}` : ""].filter(Boolean).join("; ");
      nodes.set(node.name, { element, sign, word, describe, state: null });
      svg.append(element);
    }
    box.replaceChildren(joined.length ? svg : h("p", { class: "empty" }, "No app requires another one."));
    const others = list.filter((node) => !joined.includes(node)).map((node) => node.name);
    alone.textContent = others.length ? `On their own: ${others.join(", ")}` : "";
    update();
  }

  function update() {
    for (const [name, node] of nodes) {
      const app = store.apps.get(name);
      const state = app ? shown(app) : "not-running";
      const text = app?.transition ? `${WORDS[state]}, ${app.transition}` : WORDS[state];
      node.word.textContent = text;
      node.element.setAttribute("aria-label", [`${name}, ${text}`, node.describe].filter(Boolean).join("; "));
      if (node.state === state) continue;
      node.state = state;
      node.sign.replaceChildren(symbol(state));
    }
  }

  get("graph").then(({ apps }) => draw(apps.map((node) => ({ ...node, name: node.app })))).catch((error) => box.replaceChildren(h("p", { class: "empty" }, error.message)));
  return on("apps", update);
}
