// SPDX-License-Identifier: Apache-2.0

// Shows what a sandboxed app asks permission for, and why. Users who may change apps can answer.
import { toast } from "./actions.js";
import { card, h, table } from "./dom.js";
import { textIn } from "./face.js";
import { ago } from "./format.js";
import { appPath, get, on, post, store } from "./store.js";

export class Permissions {
  constructor(name) {
    this.name = name;
    this.body = h("div");
    this.element = card("Permissions", this.body);
    this.element.hidden = true;
    this.end = on("events", (event) => { if (event?.kind === "permission" && event.app === name) this.load(); });
    this.load();
  }

  async load() {
    let permissions;
    try { ({ permissions } = await get(appPath(this.name, "/permissions"))); } catch { return; }
    const mayChange = store.supervisor.may_change;
    // Redraw only on changes: redrawing would take the focus from a button.
    const shown = JSON.stringify([permissions, mayChange]);
    if (shown === this.shown) return;
    this.shown = shown;
    this.element.hidden = permissions.length === 0;
    this.body.replaceChildren(...(permissions.length
      ? [table(["Permission", "State", "Purpose", ...(mayChange ? [""] : [])], permissions.map((one) => this.row(one, mayChange)), { label: "Permissions" })]
      : []));
  }

  row(one, mayChange) {
    const name = one.ports.length ? `${one.name} (${one.ports.join(", ")})` : one.name;
    const button = (label, answer, words) => h("button", {
      type: "button", class: "link", "aria-label": `${label} ${one.name}`, onclick: () => this.send(one, answer, words) }, label);
    return h("tr", {}, h("td", { class: "mono" }, name),
      h("td", { title: one.by ? `${one.by}, ${ago(one.at)}` : "no person has answered" }, one.state), h("td", {}, textIn(one.purpose, one.purposes)),
      mayChange ? h("td", { class: "right" },
        one.state === "allowed" ? null : button("Allow", "allow", "allowed"), one.state === "asked" ? " " : null,
        one.state === "denied" ? null : button("Deny", "deny", "denied")) : null);
  }

  async send(one, answer, words) {
    try {
      const { message } = await post(appPath(this.name, "/permissions"), { name: one.name, answer });
      toast(`${this.name}: ${one.name} ${words}${message ? `; ${message}` : ""}`);
    } catch (error) { toast(`${this.name}: ${error.message}`, true); }
    this.load();
  }
}
