// SPDX-License-Identifier: Apache-2.0

// The unhandled messages of an app; users who may change apps can deliver them again or drop them.
import { toast } from "./actions.js";
import { card, h, table } from "./dom.js";
import { ago, plural } from "./format.js";
import { appPath, get, on, post, store } from "./store.js";

const WHY = { unhandled: "not handled", crashed: "the app ended", "unknown-message": "unknown message", unreadable: "unreadable" };

export class Unhandled {
  constructor(name) {
    this.name = name;
    this.body = h("div");
    this.element = card("Unhandled messages", this.body);
    this.element.hidden = true;
    this.end = on("events", (event) => { if (event?.kind === "unhandled" && event.app === name) this.load(); });
    this.load();
  }

  async load() {
    let unhandled;
    try { ({ unhandled } = await get(appPath(this.name, "/unhandled"))); } catch { return; }
    this.element.hidden = unhandled.length === 0;
    if (!unhandled.length) return this.body.replaceChildren();
    const mayChange = store.supervisor.may_change;
    // Show the newest first.
    const shown = unhandled.slice(-50).reverse();
    this.body.replaceChildren(
      table(["Message", "From", "Since", "Why", ...(mayChange ? [""] : [])], shown.map((one) => this.row(one, mayChange)), { label: "Unhandled messages" }),
      ...(unhandled.length > shown.length ? [h("p", { class: "muted" }, `and ${plural(unhandled.length - shown.length, "older message")}`)] : []));
  }

  row(one, mayChange) {
    const about = one.payload?.url ?? (one.key ? `${one.topic} (${one.key})` : one.topic);
    const why = `${WHY[one.why] ?? one.why}${one.why === "crashed" && one.attempts > 1 ? ` in ${one.attempts} runs` : ""}`;
    const button = (label, body, words) => h("button", {
      type: "button", class: "link", "aria-label": `${label}: ${about}`, onclick: () => this.send(body, words) }, label);
    return h("tr", {}, h("td", { class: "mono" }, about), h("td", {}, one.sender), h("td", { class: "num" }, ago(one.since)), h("td", {}, why),
      mayChange ? h("td", { class: "right" }, button("Replay", { replay: one.id }, "replayed"), " ", button("Drop", { drop: [one.id] }, "dropped")) : null);
  }

  async send(body, words) {
    try {
      await post(appPath(this.name, "/unhandled"), body);
      toast(`${this.name}: message ${words}`);
    } catch (error) { toast(`${this.name}: ${error.message}`, true); }
    this.load();
  }
}
