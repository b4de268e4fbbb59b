// SPDX-License-Identifier: Apache-2.0

// An app's title and icon.
import { h, setText } from "./dom.js";
import { appPath } from "./store.js";

/** The title in the reader's language, or null if the app has only its name; same rules as AppSummary.title(in:). */
export function titleOf(app) {
  const titles = app?.titles ?? {};
  if (!Object.keys(titles).length) return app?.title ?? null;
  for (const language of navigator.languages ?? [navigator.language]) {
    const parts = language.toLowerCase().split("-");
    for (; parts.length; parts.pop()) {
      const found = titles[parts.join("-")];
      if (found) return found;
      // The title without a language counts as English.
      if (parts.length === 1 && parts[0] === "en") return app.title ?? null;
    }
  }
  return app.title ?? null;
}

/** The app's name to show beside its title; empty if both are the same word. */
export function aliasOf(app) {
  const title = titleOf(app);
  return title === null || title.toLowerCase() === app.name.toLowerCase() ? "" : app.name;
}

/** The app's icon, or its first letter. Hidden from screen readers, since the name stands beside it. */
export class Face {
  constructor(name) {
    this.name = name;
    this.file = undefined;
    /** When loading the icon failed. */
    this.failed = 0;
    this.element = h("span", { class: "face", "aria-hidden": "true" });
  }

  update(app) {
    // A letter may be more than one UTF-16 code unit.
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
