// SPDX-License-Identifier: Apache-2.0

// Alerts of apps for people: the open ones, above every page.
import { announce, toast } from "./actions.js";
import { h } from "./dom.js";
import { titleOf } from "./face.js";
import { ago } from "./format.js";
import { appPath, get, on, post, store } from "./store.js";

/** How many alerts are shown at first; a button shows the others. */
const MOST = 5;
let showsAll = false;

const place = document.getElementById("alerts");
const seen = new Set();
let soon = null;

async function act(one, body) {
  try {
    await post(appPath(one.app, "/alerts"), body);
  } catch (error) { toast(`${one.app}: ${error.message}`, true); }
  document.activeElement?.blur();
  load();
}

function drawn(one) {
  const app = store.apps.get(one.app);
  const button = (label, body, kind) => h("button", { type: "button", class: kind, "aria-label": `${label}: ${one.title}`, onclick: () => act(one, body) }, label);
  const buttons = store.supervisor.may_change ? [
    // A permission question has the buttons to allow and to deny, but nothing to open.
    ...(one.permission ? [] : [button("Open", { answer: one.number }, "primary")]),
    ...one.actions.map((action) => button(action.label, { answer: one.number, action: action.id })),
    button("Dismiss", { dismiss: [one.number] }, "link"),
  ] : [];
  return h("article", { class: "alert", "data-urgency": one.urgency, "aria-label": one.title },
    h("div", {}, h("strong", {}, one.title), one.body ? h("p", {}, one.body) : null,
      h("small", { class: "muted" }, `${(app && titleOf(app)) ?? one.app} · ${ago(one.at)}`)),
    h("div", { class: "alert-buttons" }, buttons));
}

async function load() {
  clearTimeout(soon);
  soon = setTimeout(load, 30_000);
  if (store.needsToken || document.hidden) return;
  let open;
  try {
    open = (await get("alerts")).alerts.filter((one) => one.state === "open");
  } catch { return; /* The banner shows that torpord is gone. */ }
  // Redrawing would take the focus from a button.
  if (place.contains(document.activeElement)) return;
  open.sort((one, other) => (other.urgency === "critical") - (one.urgency === "critical") || other.number - one.number);
  place.hidden = open.length === 0;
  const rest = open.length - MOST;
  const toggle = h("button", { type: "button", class: "link", "aria-expanded": String(showsAll), onclick: () => {
    showsAll = !showsAll;
    document.activeElement?.blur();
    load();
  } }, showsAll ? "Show fewer" : `Show ${rest} more`);
  place.replaceChildren(...(showsAll ? open : open.slice(0, MOST)).map(drawn), ...(rest > 0 ? [toggle] : []));
  for (const one of open) if (!seen.has(one.number)) announce(`${one.app}: ${one.title}`);
  seen.clear();
  for (const one of open) seen.add(one.number);
}

/** Shows open alerts from now on. */
export function showAlerts() {
  on("events", (event) => { if (event.kind === "alert") load(); });
  on("supervisor", () => { if (soon === null) load(); });
  document.addEventListener("visibilitychange", load);
}
