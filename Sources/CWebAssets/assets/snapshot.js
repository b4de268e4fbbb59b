// SPDX-License-Identifier: Apache-2.0

// The snapshot that an app saved when it last went to the background.
import { card, h, setText } from "./dom.js";
import { ago, bytes, time } from "./format.js";
import { appPath } from "./store.js";

// Remove escape sequences for cursors and colours.
const CONTROL = /\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g;

const waiting = new WeakMap();
/** Loads a picture when its row comes into view: there may be many rows, and a picture may be large. */
const view = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    view.unobserve(target);
    waiting.get(target)?.load();
  }
}, { rootMargin: "50% 0px" });

/** A small picture of an app's last snapshot, shown while the app is not in use; hidden if there is no snapshot. */
export class Thumbnail {
  constructor(name) {
    this.name = name;
    this.at = null;
    this.element = h("a", { class: "thumbnail", href: `#/app/${encodeURIComponent(name)}`, tabindex: "-1", "aria-hidden": "true", hidden: true });
  }

  /** `at`: the snapshot's time, or null. */
  update(at) {
    if (at === this.at) return;
    this.at = at;
    this.element.hidden = true;
    this.element.replaceChildren();
    // Observe the parent: this element is hidden itself, and so never in view.
    const place = this.element.parentElement;
    view.unobserve(place);
    if (at === null) return;
    waiting.set(place, this);
    view.observe(place);
  }

  load() {
    if (this.at === null) return;
    // The picture stays hidden if it cannot be loaded.
    const src = `/api/v1/${appPath(this.name, "/snapshot")}?at=${this.at}`;
    this.element.replaceChildren(h("img", { src, alt: "", onload: () => { this.element.hidden = false; } }));
  }
}

/** A card with an app's snapshot; hidden if there is no snapshot. */
export class Snapshot {
  constructor(name) {
    this.name = name;
    this.known = null;
    this.body = h("div", { class: "snapshot" });
    this.note = h("span", { class: "muted small" });
    this.element = card("Snapshot", this.body, this.note);
    this.element.hidden = true;
  }

  /** `snapshot`: the member of the app's status. */
  show(snapshot) {
    const isNew = snapshot && (snapshot.at !== this.known?.at || snapshot.bytes !== this.known?.bytes);
    this.known = snapshot;
    this.element.hidden = !snapshot;
    this.update();
    if (isNew) this.load(snapshot);
    if (!snapshot) this.body.replaceChildren();
  }

  /** Updates the displayed age. */
  update() {
    if (this.known) setText(this.note, `${this.known.kind}, ${bytes(this.known.bytes)}, ${ago(this.known.at)}`);
  }

  async load(snapshot) {
    const path = `/api/v1/${appPath(this.name, "/snapshot")}?at=${snapshot.at}`;
    if (snapshot.kind !== "text") {
      this.body.replaceChildren(h("img", { src: path, alt: `What ${this.name} showed, ${time(snapshot.at)}` }));
      return;
    }
    const answer = await fetch(path).catch(() => null);
    const text = answer?.ok ? (await answer.text()).replace(CONTROL, "") : null;
    if (this.known?.at !== snapshot.at || text === null) return;
    this.body.replaceChildren(h("pre", { tabindex: "0", role: "region", "aria-label": `What ${this.name} showed` }, text));
  }
}
