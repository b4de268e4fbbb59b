// SPDX-License-Identifier: Apache-2.0

// The states of apps over time, one lane per app: the higher, the more active.
import { setAttribute, setText, showTip, h, s } from "./dom.js";
import { duration, time } from "./format.js";
import { HEIGHTS, STATES, WORDS, shown, symbol } from "./states.js";
import { get, on, store } from "./store.js";

const WINDOWS = { "5 min": 300, "1 h": 3600, "24 h": 86400 };
export const choice = { window: "5 min" };

/** The known changes of state of each app, oldest first. */
class History {
  constructor(app) {
    this.app = app;
    this.changes = new Map();
    this.newest = 0;
    this.since = Infinity;
  }

  async load(seconds) {
    const since = Math.floor((Date.now() - seconds * 1000) * 1000);
    if (since >= this.since) return;
    const path = `events?kinds=state&limit=10000&since=${since}${this.app ? `&app=${encodeURIComponent(this.app)}` : ""}`;
    const { events } = await get(path);
    this.changes = new Map();
    this.newest = 0;
    for (const event of events) this.take(event);
    this.since = since;
  }

  take(event) {
    if (event.kind !== "state" || !event.app || event.sequence <= this.newest) return;
    this.newest = event.sequence;
    if (!this.changes.has(event.app)) this.changes.set(event.app, []);
    this.changes.get(event.app).push(event);
  }

  /** Intervals of constant state within a window. */
  stretches(app, from, to) {
    const changes = this.changes.get(app.name) ?? [];
    const list = [];
    let state = changes[0]?.from ?? app.state;
    let at = from;
    const add = (until) => { if (until > at) list.push({ state, from: at, to: until }); };
    for (const change of changes) {
      if (change.at > from) { add(Math.min(change.at, to)); at = Math.max(at, change.at); }
      state = change.to;
    }
    state = changes.length ? state : app.state;
    if (app.failed && state === "not-running") state = "failed";
    add(to);
    return list;
  }
}

const LANE = 34;
const LABEL = 118;
const RIGHT = 10;

/** Lanes that update themselves; `end()` stops that. */
export class Lanes {
  constructor(appName) {
    this.appName = appName;
    this.history = new History(appName);
    this.svg = s("svg", { class: "chart lanes", role: "group", "aria-label": "States over time" });
    this.said = h("p", { class: "unseen", "aria-live": "polite" });
    this.element = h("div", {}, this.svg, this.said);
    this.lanes = new Map();
    /** The lanes' elements, reused so that they keep the focus. */
    this.groups = new Map();
    this.grid = this.svg.appendChild(s("g"));
    this.picked = null;
    this.svg.addEventListener("pointermove", (event) => this.hover(event));
    this.svg.addEventListener("pointerleave", () => this.pick(null));
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.element);
    this.timer = setInterval(() => this.draw(), 1000);
    this.ends = [on("events", (event) => { this.history.take(event); }), on("apps", () => this.draw())];
    this.load();
  }

  end() {
    clearInterval(this.timer);
    this.resize.disconnect();
    this.ends.forEach((end) => end());
    showTip("");
  }

  async load() {
    try { await this.history.load(WINDOWS[choice.window]); } catch { /* The banner shows that torpord is gone. */ }
    this.draw();
  }

  apps() {
    const all = [...store.apps.values()].filter((app) => !this.appName || app.name === this.appName);
    return all.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  }

  draw() {
    const apps = this.apps();
    const width = Math.max(280, this.element.clientWidth);
    const label = this.appName ? 0 : Math.min(LABEL, width * .3);
    const height = apps.length * LANE + 26;
    const seconds = WINDOWS[choice.window];
    const to = Date.now() * 1000;
    const from = to - seconds * 1e6;
    const x = (at) => label + (width - label - RIGHT) * (at - from) / (to - from);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.grid.replaceChildren(...ticks(from, to, width).flatMap(([at, text]) => [
      s("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: height - 22 }),
      s("text", { x: x(at), y: height - 6, "text-anchor": "middle" }, text),
    ]));
    this.lanes.clear();
    for (const [name, group] of this.groups) {
      if (apps.some((app) => app.name === name)) continue;
      group.remove();
      this.groups.delete(name);
    }
    apps.forEach((app, index) => {
      const top = index * LANE;
      const stretches = this.history.stretches(app, from, to);
      const base = top + LANE - 5;
      const lane = this.group(app.name);
      setAttribute(lane, "aria-label", describe(app, stretches));
      lane.replaceChildren(s("rect", { x: 0, y: top, width, height: LANE, fill: "transparent" }));
      if (label) lane.append(s("text", { class: "label", x: 0, y: top + LANE / 2 + 5 }, app.name.length > 15 ? `${app.name.slice(0, 14)}…` : app.name));
      lane.append(s("line", { class: "grid", x1: label, x2: width - RIGHT, y1: base + .5, y2: base + .5 }));
      stretches.forEach((stretch, number) => {
        const left = x(stretch.from);
        const tall = (LANE - 10) * (HEIGHTS[stretch.state] ?? .1);
        const isLit = this.picked?.app === app.name && this.picked.number === number;
        lane.append(s("rect", { class: `seg s-${stretch.state}${isLit ? " lit" : ""}`, x: left, width: Math.max(1.2, x(stretch.to) - left - .6), y: base - tall, height: tall, rx: Math.min(2, tall / 2) }));
        if (stretch.state === "suspended" && x(stretch.to) - left > 9) {
          lane.append(s("path", { class: "hatch", d: hatch(left, x(stretch.to) - 1, base - tall, base) }));
        }
      });
      this.lanes.set(app.name, { stretches, top, x });
      if (this.svg.children[index + 1] !== lane) this.svg.insertBefore(lane, this.svg.children[index + 1] ?? null);
    });
  }

  group(name) {
    let lane = this.groups.get(name);
    if (!lane) {
      lane = s("g", { class: "lane", tabindex: 0, role: "img", "data-lane": name });
      lane.addEventListener("keydown", (event) => this.key(event, name));
      lane.addEventListener("blur", () => this.pick(null));
      this.groups.set(name, lane);
    }
    return lane;
  }

  key(event, name) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const { stretches } = this.lanes.get(name) ?? { stretches: [] };
    if (!step || !stretches.length) return;
    event.preventDefault();
    const now = this.picked?.app === name ? this.picked.number : stretches.length;
    const number = Math.max(0, Math.min(stretches.length - 1, now + step));
    const box = this.svg.getBoundingClientRect();
    const { top, x } = this.lanes.get(name);
    this.pick({ app: name, number }, box.left + x(stretches[number].from), box.top + top);
    setText(this.said, this.tip());
  }

  hover(event) {
    const box = this.svg.getBoundingClientRect();
    for (const [app, { stretches, top, x }] of this.lanes) {
      if (event.clientY - box.top < top || event.clientY - box.top >= top + LANE) continue;
      const at = event.clientX - box.left;
      const number = stretches.findIndex((stretch) => x(stretch.from) <= at && at <= x(stretch.to));
      if (number >= 0) return this.pick({ app, number }, event.clientX, event.clientY);
    }
    this.pick(null);
  }

  tip() {
    const stretch = this.picked && this.lanes.get(this.picked.app)?.stretches[this.picked.number];
    if (!stretch) return "";
    return `${this.picked.app}: ${WORDS[stretch.state] ?? stretch.state}\n${time(stretch.from)} – ${time(stretch.to)}, ${duration((stretch.to - stretch.from) / 1e6)}`;
  }

  pick(what, x, y) {
    const isOther = what?.app !== this.picked?.app || what?.number !== this.picked?.number;
    this.picked = what;
    showTip(this.tip(), x, y);
    if (isOther) this.draw();
  }
}

const describe = (app, stretches) => {
  const last = stretches.at(-1);
  return `${app.name}: ${WORDS[shown(app)]}${last ? `, since ${time(last.from)}` : ""}; ${Math.max(0, stretches.length - 1)} changes in view. Arrow keys step through them.`;
};

function hatch(left, right, top, bottom) {
  let path = "";
  for (let at = left + 3; at < right - 2; at += 7) path += `M${at.toFixed(1)} ${bottom}l${Math.min(4, right - at).toFixed(1)} ${(top - bottom).toFixed(1)}`;
  return path || "M0 0";
}

/** Positions of labelled lines: [microseconds, text]. */
export function ticks(from, to, width) {
  const span = (to - from) / 1e6;
  const steps = [10, 30, 60, 300, 600, 900, 1800, 3600, 7200, 14400, 28800];
  const step = (steps.find((seconds) => span / seconds <= width / 95) ?? 28800) * 1e6;
  const offset = new Date().getTimezoneOffset() * 60e6;
  const list = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at < to; at += step) {
    if (at - from > step * .25 && to - at > step * .2) list.push([at, time(at, step >= 60e6).split(", ").at(-1)]);
  }
  return list;
}

/** Buttons that choose the length of the window. */
export function zoom(labels, isChosen, choose) {
  const buttons = labels.map((label) => h("button", { type: "button", "aria-pressed": String(isChosen(label)), onclick: () => {
    choose(label);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === label));
  } }, label));
  return h("div", { class: "group", role: "group", "aria-label": "How much time" }, buttons);
}

export const stateLegend = () => h("div", { class: "legend" }, STATES.map((state) => h("span", {}, symbol(state), WORDS[state])));

export const timeZoom = (lanes) => zoom(Object.keys(WINDOWS), (label) => label === choice.window, (label) => { choice.window = label; lanes.load(); });

export function timeline(main) {
  const lanes = new Lanes(null);
  main.append(h("div", { class: "head" }, h("h1", {}, "Timeline"), h("span", { class: "grow" }), timeZoom(lanes)),
    h("section", { class: "card", "aria-label": "States of all apps" }, lanes.element, stateLegend()));
  lanes.draw();
  return () => lanes.end();
}
