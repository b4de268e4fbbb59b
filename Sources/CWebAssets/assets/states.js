// SPDX-License-Identifier: Apache-2.0

// The look of states (colour, symbol, word), and the verbs offered in each.
import { h, s } from "./dom.js";

export const STATES = ["active", "inactive", "background", "suspended", "not-running", "failed"];

export const WORDS = {
  "active": "active", "inactive": "inactive", "background": "background", "suspended": "suspended",
  "not-running": "not running", "failed": "failed",
};

/** The displayed state: an app that is no longer restarted counts as failed. */
export const shown = (app) => app.failed && app.state === "not-running" ? "failed" : app.state;

const SHAPES = {
  "active": () => [s("circle", { cx: 8, cy: 8, r: 6.5 })],
  "inactive": () => [s("circle", { cx: 8, cy: 8, r: 5.7, fill: "none", stroke: "currentColor", "stroke-width": 1.8 }),
    s("path", { d: "M8 2.3a5.7 5.7 0 0 1 0 11.4Z" })],
  "background": () => [s("circle", { cx: 8, cy: 8, r: 5.7, fill: "none", stroke: "currentColor", "stroke-width": 1.8 }),
    s("circle", { cx: 8, cy: 8, r: 2.6 })],
  "suspended": () => [s("rect", { x: 3, y: 2, width: 3.6, height: 12, rx: 1 }), s("rect", { x: 9.4, y: 2, width: 3.6, height: 12, rx: 1 })],
  "not-running": () => [s("circle", { cx: 8, cy: 8, r: 5.7, fill: "none", stroke: "currentColor", "stroke-width": 1.8 })],
  "failed": () => [s("path", { d: "M3.5 3.5l9 9m0-9l-9 9", fill: "none", stroke: "currentColor", "stroke-width": 2.6, "stroke-linecap": "round" })],
};

/** The symbol of a state. */
export const symbol = (state) => s("svg", { viewBox: "0 0 16 16", width: 15, height: 15, class: `s-${state}`, "aria-hidden": "true" },
  (SHAPES[state] ?? SHAPES["not-running"])());

/** Symbol and word. */
export const badge = (state) => h("span", { class: "state", "data-state": state }, symbol(state), h("span", {}, WORDS[state] ?? state));

/** A state's height in a timeline, from 0 to 1, so that states differ without colours too. */
export const HEIGHTS = { "active": 1, "inactive": .8, "background": .6, "suspended": .4, "not-running": .1, "failed": .1 };

export const VERBS = {
  start: ["Start", "Launch it"], foreground: ["Foreground", "Bring it to the foreground"],
  background: ["Background", "Send it to the background"], suspend: ["Suspend", "Pause all its processes, in memory"],
  resume: ["Resume", "Continue its processes, in the background"], restart: ["Restart", "Stop it, and start it again"],
  hold: ["Hold 10 min", "Keep it in the background for ten minutes: nothing suspends it"], reset: ["Reset", "Clear its failure and its count of restarts"],
  stop: ["Stop", "End it with notice and a grace period"], kill: ["Kill", "End it at once, without notice"],
};

/** The verbs offered for an app, likeliest first. */
export function verbs(app) {
  switch (shown(app)) {
    case "failed": return ["start", "reset"];
    case "not-running": return app.transition ? ["kill"] : ["start"];
    case "suspended": return ["resume", "foreground", "stop", "kill"];
    case "background": return ["suspend", "foreground", "hold", "restart", "stop", "kill"];
    case "inactive": return ["foreground", "suspend", "background", "restart", "stop", "kill"];
    default: return ["suspend", "background", "restart", "stop", "kill"];
  }
}
