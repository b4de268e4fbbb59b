// SPDX-License-Identifier: Apache-2.0

// Events and their reasons.
import { h } from "./dom.js";
import { time } from "./format.js";
import { get, on, store } from "./store.js";

/** A list item for an event; without the app's name on the app's own page. */
export function line(event, isShort = false) {
  return h("li", { "data-sequence": event.sequence },
    h("time", { class: "muted num small", datetime: new Date(event.at / 1000).toISOString() }, time(event.at)),
    isShort ? null : event.app ? h("a", { href: `#/app/${encodeURIComponent(event.app)}` }, event.app) : h("span", { class: "muted" }, "torpord"),
    h("span", {}, h("span", { class: "badge" }, event.kind)),
    h("p", {}, event.text));
}

const PAGE = 200;

export function events(main) {
  const list = h("ol", { class: "events", reversed: true });
  const filter = h("input", { type: "search", id: "filter", placeholder: "Filter  /", "aria-label": "Filter events by app, kind or text", oninput: () => show() });
  const older = h("button", { type: "button", onclick: () => loadOlder() }, "Show older ones");
  const quiet = h("input", { type: "checkbox", onchange: () => show() });
  const note = h("p", { class: "muted small" });
  let all = [];
  main.append(h("div", { class: "head" }, h("h1", {}, "Events"), h("span", { class: "grow" }),
    h("label", { class: "field" }, quiet, h("span", {}, "messages and requests too")), filter),
    h("section", { class: "card", "aria-label": "Events" }, list, note), older);

  const isWanted = (event) => {
    if (!quiet.checked && ["message", "request"].includes(event.kind)) return false;
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return words.every((word) => `${event.app ?? "torpord"} ${event.kind} ${event.text} ${event.reason ?? ""}`.toLowerCase().includes(word));
  };
  function show() {
    const chosen = all.filter(isWanted);
    list.replaceChildren(...chosen.slice(-1000).reverse().map((event) => line(event)));
    note.textContent = chosen.length ? "" : "There are no such events.";
  }
  async function loadOlder() {
    older.disabled = true;
    try {
      const until = all.length ? `&until=${all[0].at}` : "";
      const answer = await get(`events?limit=${PAGE}${until}`);
      const known = new Set(all.map((event) => event.sequence));
      const more = answer.events.filter((event) => !known.has(event.sequence));
      all = [...more, ...all];
      older.hidden = more.length === 0;
      show();
      if (answer.incomplete) note.textContent = answer.incomplete;
    } catch (error) { note.textContent = error.message; }
    older.disabled = false;
  }
  loadOlder();
  return on("events", (event) => {
    if (all.length && event.sequence <= all.at(-1).sequence) return;
    all.push(event);
    if (isWanted(event)) {
      list.prepend(line(event));
      note.textContent = "";
      if (list.childElementCount > 1200) list.lastElementChild.remove();
    }
  });
}

/** An app's last events, updated live. */
export function eventsOf(name, body) {
  const list = h("ol", { class: "events short", reversed: true });
  body.replaceChildren(list);
  let newest = 0;
  const add = (event) => {
    if (event.app !== name || event.sequence <= newest) return;
    newest = event.sequence;
    list.prepend(line(event, true));
    while (list.childElementCount > 40) list.lastElementChild.remove();
  };
  get(`events?limit=40&app=${encodeURIComponent(name)}`).then(({ events }) => {
    events.forEach(add);
    if (!list.childElementCount) list.append(h("li", { class: "muted" }, h("p", {}, "Nothing happened yet.")));
  }).catch(() => store.events.forEach(add));
  return on("events", add);
}
