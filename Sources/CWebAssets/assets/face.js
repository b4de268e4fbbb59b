// SPDX-License-Identifier: Apache-2.0

// How people know an app: what they call it, and its picture.
import { h, setText } from "./dom.js";
import { appPath } from "./store.js";

/** What it is called in the reader's language, or null where its name is all there is; as AppSummary.title(in:) finds it. */
export function titleOf(app) {
  const titles = app?.titles ?? {};
  if (!Object.keys(titles).length) return app?.title ?? null;
  for (const language of navigator.languages ?? [navigator.language]) {
    const parts = language.toLowerCase().split("-");
    for (; parts.length; parts.pop()) {
      const found = titles[parts.join("-")];
      if (found) return found;
      // What is for all languages is taken for English.
      if (parts.length === 1 && parts[0] === "en") return app.title ?? null;
    }
  }
  return app.title ?? null;
}

/** What stands beside its title: its name, unless that is the same word. */
export function aliasOf(app) {
  const title = titleOf(app);
  return title === null || title.toLowerCase() === app.name.toLowerCase() ? "" : app.name;
}

/** The picture of an app, or the first letter of its name; the name stands beside it, so that none of it is read aloud. */
export class Face {
  constructor(name) {
    this.name = name;
    this.file = undefined;
    /** When its picture could not be had. */
    this.failed = 0;
    this.element = h("span", { class: "face", "aria-hidden": "true" });
  }

  update(app) {
    // A letter may be more than one unit of UTF-16.
    const letter = [...(titleOf(app) ?? this.name).trim()][0]?.toUpperCase() ?? "?";
    if (app.icon !== this.file || (this.failed && Date.now() - this.failed > 10000)) {
      this.file = app.icon;
      this.failed = 0;
      if (this.file) this.load(letter);
    }
    if (!this.file) setText(this.element, letter);
  }

  load(letter) {
    const src = `/api/v1/${appPath(this.name, "/icon")}?file=${encodeURIComponent(this.file)}`;
    this.element.replaceChildren(h("img", { src, alt: "", loading: "lazy", onerror: () => {
      this.failed = Date.now();
      this.element.replaceChildren(letter);
    } }));
  }
}
