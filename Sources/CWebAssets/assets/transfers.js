// SPDX-License-Identifier: Apache-2.0

// Downloads and uploads: of one app on its page, of all apps on a page of their own.
import { toast } from "./actions.js";
import { card, h, table } from "./dom.js";
import { bytes, duration } from "./format.js";
import { appPath, get, post, store } from "./store.js";

const isOver = (one) => ["done", "failed", "cancelled"].includes(one.state);

function progress(one) {
  if (!one.total) return h("span", { class: "num" }, bytes(one.bytes));
  const words = `${Math.min(100, Math.floor((one.bytes * 100) / one.total))} % of ${bytes(one.total)}`;
  return h("span", { class: "transfer-progress" }, h("progress", { max: one.total, value: Math.min(one.bytes, one.total), "aria-label": words }), h("small", { class: "num" }, words));
}

function left(one) {
  if (one.state === "waiting" && one.retry_at) return `again in ${duration(Math.max(0, one.retry_at / 1e6 - Date.now() / 1000))}`;
  if (one.state !== "running" || !one.rate) return "–";
  const rate = `${bytes(one.rate)}/s`;
  return one.total ? `${rate}, ${duration(Math.max(0, one.total - one.bytes) / one.rate)} left` : rate;
}

/** A table of transfers; the button of an unfinished transfer calls `cancel`. */
function rows(list, withApps, cancel) {
  return table([...(withApps ? ["App"] : []), "URL", "Session", "State", "Progress", "", ...(cancel ? [""] : [])], list.map((one) => h("tr", {},
    withApps ? h("td", {}, h("a", { href: `#/app/${encodeURIComponent(one.app)}` }, one.app)) : null,
    h("td", { class: "mono" }, `${one.direction === "upload" ? "to " : ""}${one.url}`), h("td", {}, one.session),
    h("td", { title: one.error }, one.state === "waiting" ? `waits: ${one.cause}` : one.state), h("td", {}, progress(one)), h("td", { class: "num" }, left(one)),
    cancel ? h("td", { class: "right" }, isOver(one) ? null : h("button", { type: "button", class: "link", "aria-label": `Cancel ${one.url}`, onclick: () => cancel(one) }, "Cancel")) : null)),
  { label: "Transfers" });
}

/** Polls every second while a transfer is unfinished, else every ten seconds. */
class Polled {
  constructor() {
    this.isEnded = false;
    this.body = h("div");
  }

  async load(path, draw) {
    clearTimeout(this.soon);
    if (this.isEnded) return;
    let wait = 10_000;
    try {
      const { transfers } = await get(path);
      if (transfers.some((one) => !isOver(one))) wait = 1000;
      // Redrawing would take the focus from a button.
      if (!this.body.contains(document.activeElement)) draw(transfers);
    } catch { /* The banner shows that torpord is gone. */ }
    if (!this.isEnded) this.soon = setTimeout(() => this.load(path, draw), document.hidden ? 10_000 : wait);
  }

  end() {
    this.isEnded = true;
    clearTimeout(this.soon);
  }

  async cancel(one) {
    try {
      await post(appPath(one.app, "/transfers"), { cancel: [one.id] });
      toast(`${one.app}: transfer cancelled`);
    } catch (error) { toast(`${one.app}: ${error.message}`, true); }
    document.activeElement?.blur();
  }

  get canceller() { return store.supervisor.may_change ? (one) => this.cancel(one) : null; }
}

/** The card on an app's page; hidden if there are no transfers. */
export class Transfers extends Polled {
  constructor(name) {
    super();
    this.element = card("Transfers", this.body);
    this.element.hidden = true;
    this.load(appPath(name, "/transfers"), (list) => {
      this.element.hidden = list.length === 0;
      this.body.replaceChildren(...(list.length ? [rows(list, false, this.canceller)] : []));
    });
  }
}

/** The page of all apps' transfers. */
export function transfers(main) {
  const polled = new Polled();
  main.append(h("div", { class: "head" }, h("h1", {}, "Transfers"), h("p", { class: "muted" }, "Downloads and uploads for apps, even while they sleep.")),
    h("section", { class: "card", "aria-label": "Transfers" }, polled.body));
  polled.load("transfers", (list) => polled.body.replaceChildren(list.length ? rows(list, true, polled.canceller) : h("p", { class: "empty" }, "Nothing is transferred.")));
  return () => polled.end();
}
