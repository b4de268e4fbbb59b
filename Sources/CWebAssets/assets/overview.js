// SPDX-License-Identifier: Apache-2.0

// All apps: their state, and actions on them.
import { Actions, announce } from "./actions.js";
import { h, s, setAttribute, setText } from "./dom.js";
import { Face, aliasOf, summaryOf, titleOf } from "./face.js";
import { ago, bytes, percent, plural, uptime } from "./format.js";
import { STATES, WORDS, badge, shown, symbol } from "./states.js";
import { Thumbnail } from "./snapshot.js";
import { on, store, uptimeOf } from "./store.js";

const SORTS = {
  name: ["Name", (a, b) => (titleOf(a) ?? a.name).localeCompare(titleOf(b) ?? b.name, undefined, { numeric: true }) || a.name.localeCompare(b.name)],
  state: ["State", (a, b) => STATES.indexOf(shown(a)) - STATES.indexOf(shown(b))],
  memory: ["Memory", (a, b) => (b.memory_bytes ?? 0) - (a.memory_bytes ?? 0)],
  cpu: ["Processor", (a, b) => (b.cpuPercent ?? 0) - (a.cpuPercent ?? 0)],
  uptime: ["Uptime", (a, b) => (uptimeOf(b) ?? -1) - (uptimeOf(a) ?? -1)],
  restarts: ["Restarts", (a, b) => b.restarts - a.restarts],
};
// The choices last while the page is open.
const choice = { text: "", states: new Set(), sort: "name" };

/** A row of the table, updated in place. */
class Row {
  constructor(app) {
    this.flight = h("span", { class: "flight", hidden: true });
    this.stateCell = h("td", { class: "stateful" });
    this.sub = h("span", { class: "sub" });
    this.face = new Face(app.name);
    this.thumbnail = new Thumbnail(app.name);
    this.title = h("span");
    this.alias = h("span", { class: "alias" });
    this.count = h("span", { class: "count num", hidden: true });
    this.extra = h("span", { class: "small" });
    this.memory = h("span", { class: "num" });
    this.fill = s("rect", { class: "fill", height: 5, width: 0 });
    this.bar = s("svg", { class: "bar", viewBox: "0 0 100 5", preserveAspectRatio: "none", "aria-hidden": "true" },
      s("rect", { class: "track", width: 100, height: 5 }), this.fill);
    this.cpu = h("td", { class: "right num", "data-label": "CPU" });
    this.uptime = h("td", { class: "right num", "data-label": "Up" });
    this.restarts = h("td", { class: "right num", "data-label": "Restarts" });
    // The app's last end, beside the last event's sentence, which may be cut.
    this.reason = h("span", { class: "badge", hidden: true });
    this.last = h("span", { class: "sub" });
    this.lastAt = h("span", { class: "sub small" });
    this.actions = new Actions(app.name, 2);
    this.element = h("tr", { class: "row", "data-app": app.name },
      h("td", {}, h("div", { class: "known" }, this.face.element,
        h("div", {}, h("a", { class: "name", href: `#/app/${encodeURIComponent(app.name)}` }, this.title, this.alias), this.count, this.sub),
        this.thumbnail.element)),
      this.stateCell,
      h("td", { class: "right", "data-label": "Memory" }, this.memory, this.bar), this.cpu, this.uptime, this.restarts,
      h("td", { class: "wide" }, this.reason, this.last, this.lastAt),
      h("td", { class: "act" }, this.actions.element));
    this.state = null;
  }

  update(app, largest) {
    const state = shown(app);
    if (state !== this.state) {
      this.stateCell.replaceChildren(badge(state), h("br"), this.flight);
      setAttribute(this.element, "data-state", state);
      if (this.state !== null) {
        this.element.classList.remove("fresh");
        void this.element.offsetWidth;
        this.element.classList.add("fresh");
      }
      this.state = state;
    }
    this.face.update(app);
    this.thumbnail.update(state === "active" ? null : app.picture_at ?? null);
    setText(this.title, titleOf(app) ?? app.name);
    setText(this.alias, aliasOf(app));
    this.count.hidden = !app.badge;
    setText(this.count, app.badge ? String(app.badge) : "");
    this.count.title = app.badge ? "the number at the app's entry" : "";
    this.flight.hidden = !app.transition;
    setText(this.flight, app.transition ?? "");
    const holds = app.holds.length ? `held: ${app.holds.join(", ")}` : "";
    setText(this.sub, holds || app.status || summaryOf(app) || "");
    this.sub.title = this.sub.textContent;
    setText(this.memory, bytes(app.memory_bytes));
    setAttribute(this.fill, "width", Math.round(100 * (app.memory_bytes ?? 0) / Math.max(1, largest)));
    setText(this.cpu, app.pid === null ? "–" : percent(app.cpuPercent));
    setText(this.restarts, String(app.restarts));
    this.actions.update(app);
    this.tick(app);
  }

  tick(app) {
    setText(this.uptime, uptime(uptimeOf(app)));
    const event = lastEvents.get(app.name);
    const reason = event ? event.kind === "exit" && event.reason : app.last_exit?.reason;
    this.reason.hidden = !reason;
    setText(this.reason, reason || "");
    setText(this.last, event ? event.text : app.last_exit ? `ended: ${app.last_exit.reason}` : "nothing happened yet");
    this.last.title = this.last.textContent;
    setText(this.lastAt, event ? ago(event.at) : app.last_exit ? ago(app.last_exit.at) : "");
  }
}

/** The last event worth showing of each app. */
const lastEvents = new Map();
const isOfInterest = (event) => event.app && event.reason !== "snapshot" && !["message", "request", "signal", "transition"].includes(event.kind);
on("events", (event) => { if (isOfInterest(event)) lastEvents.set(event.app, event); });
on("past", () => {
  for (const event of store.events) if (isOfInterest(event)) lastEvents.set(event.app, event);
});
on("apps", ({ moved }) => {
  for (const [, app] of moved ?? []) announce(`${app.name} is ${WORDS[shown(app)]}`);
});

export function overview(main) {
  const rows = new Map();
  const body = h("tbody");
  const chips = new Map(STATES.map((state) => {
    const count = h("b", { class: "num" }, "0");
    const chip = h("button", { type: "button", class: "chip", "aria-pressed": String(choice.states.has(state)), "data-state": state, onclick: () => {
      choice.states.has(state) ? choice.states.delete(state) : choice.states.add(state);
      chip.setAttribute("aria-pressed", String(choice.states.has(state)));
      order();
    } }, symbol(state), count, h("span", {}, WORDS[state]));
    return [state, { chip, count }];
  }));
  const filter = h("input", { type: "search", id: "filter", placeholder: "Filter  /", "aria-label": "Filter apps by name, state or status", value: choice.text, oninput: () => {
    choice.text = filter.value;
    order();
  } });
  const sort = h("select", { onchange: () => { choice.sort = sort.value; order(); } },
    Object.entries(SORTS).map(([value, [label]]) => h("option", { value, selected: value === choice.sort }, label)));
  const count = h("span", { class: "muted" });
  const none = h("p", { class: "empty", hidden: true });
  const heads = [["App", "", "20%"], ["State", "", "13%"], ["Memory", "right", "9%"], ["CPU", "right", "7%"], ["Uptime", "right", "10%"],
    ["Restarts", "right", "7%"], ["Last event", ""], ["Actions", "right", "20%"]];
  const columns = heads.map(([, , width]) => {
    const column = h("col");
    if (width) column.style.width = width;
    return column;
  });
  const grid = h("table", { class: "apps", role: "table" }, h("colgroup", {}, columns),
    h("thead", {}, h("tr", {}, heads.map(([text, look]) => h("th", { scope: "col", class: look }, text)))), body);
  main.append(
    h("div", { class: "head" }, h("h1", {}, "Apps"), count, h("span", { class: "grow" }), filter,
      h("label", { class: "field" }, "Sort by", sort)),
    h("div", { class: "head" }, h("div", { class: "chips", role: "group", "aria-label": "Show only these states" }, [...chips.values()].map(({ chip }) => chip))),
    h("section", { class: "card", "aria-label": "Apps" }, grid, none));

  /** Sorts and filters; reuses the rows' elements, so that they keep the focus. */
  function order() {
    const words = choice.text.toLowerCase().split(/\s+/).filter(Boolean);
    const apps = [...store.apps.values()].sort(SORTS.name[1]);
    if (choice.sort !== "name") apps.sort(SORTS[choice.sort][1]);
    // Scenes without a process appear only with a filter: there may be many, and they show nothing.
    const isPlain = !words.length && !choice.states.size;
    const isUnattached = (app) => app.scene && !app.pid && !app.transition && !app.held_back && !app.failed && app.next_restart_ms === null;
    const chosen = apps.filter((app) => !(isPlain && isUnattached(app)) && (!choice.states.size || choice.states.has(shown(app)))
      && words.every((word) => `${app.name} ${titleOf(app) ?? ""} ${WORDS[shown(app)]} ${app.transition ?? ""} ${app.status ?? ""}`.toLowerCase().includes(word)));
    const elements = chosen.map((app) => rows.get(app.name).element);
    if (elements.length !== body.children.length || elements.some((element, index) => body.children[index] !== element)) {
      const focused = body.contains(document.activeElement) ? document.activeElement : null;
      body.replaceChildren(...elements);
      focused?.focus();
    }
    setText(count, chosen.length === apps.length ? plural(apps.length, "app") : `${chosen.length} of ${plural(apps.length, "app")}`);
    none.hidden = chosen.length > 0;
    setText(none, apps.length ? isPlain ? "No scene has a process: the filter finds the scenes without one." : "No app matches." : store.isOnline ? "torpord supervises no apps." : "Waiting for torpord …");
  }

  function update() {
    const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    const largest = Math.max(1, ...[...store.apps.values()].map((app) => app.memory_bytes ?? 0));
    for (const app of store.apps.values()) {
      counts[shown(app)] = (counts[shown(app)] ?? 0) + 1;
      if (!rows.has(app.name)) rows.set(app.name, new Row(app));
      rows.get(app.name).update(app, largest);
    }
    for (const name of [...rows.keys()]) if (!store.apps.has(name)) rows.delete(name);
    for (const [state, { chip, count }] of chips) {
      setText(count, String(counts[state]));
      chip.hidden = !counts[state] && !choice.states.has(state);
    }
    // Show letters instead of icons only if some app has an icon.
    grid.classList.toggle("pictured", [...store.apps.values()].some((app) => app.icon));
    order();
  }

  update();
  const timer = setInterval(() => {
    for (const app of store.apps.values()) rows.get(app.name)?.tick(app);
  }, 1000);
  const ends = [on("apps", update), on("supervisor", update), on("past", update), () => clearInterval(timer)];
  return () => ends.forEach((end) => end());
}
