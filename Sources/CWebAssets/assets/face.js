// SPDX-License-Identifier: Apache-2.0

// An app's title, summary and icon.
import { h, isDark, setText } from "./dom.js";
import { appPath } from "./store.js";

/** The text in the reader's language, or null if there is none; same rules as AppSummary.title(in:). */
export function textIn(other = null, texts = {}) {
  if (!Object.keys(texts).length) return other;
  for (const language of navigator.languages ?? [navigator.language]) {
    const parts = language.toLowerCase().split("-");
    for (; parts.length; parts.pop()) {
      const found = texts[parts.join("-")];
      if (found) return found;
      // The text without a language counts as English.
      if (parts.length === 1 && parts[0] === "en") return other;
    }
  }
  return other;
}

/** The app's title; null if the app has only a name. */
export const titleOf = (app) => textIn(app?.title, app?.titles);

/** What the app is for, or null. */
export const summaryOf = (app) => textIn(app?.summary, app?.summaries);

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
    this.variant = isDark() && app.icons?.dark ? "dark" : "";
    const file = this.variant ? app.icons.dark : app.icon;
    if (file !== this.file || (this.failed && Date.now() - this.failed > 10000)) {
      this.file = file;
      this.failed = 0;
      if (this.file) this.load(letter);
    }
    if (!this.file) setText(this.element, letter);
  }

  load(letter) {
    const src = `/api/v1/${appPath(this.name, "/icon")}?variant=${this.variant}&file=${encodeURIComponent(this.file)}`;
    this.element.replaceChildren(h("img", { src, alt: "", loading: "lazy", onerror: () => {
      this.failed = Date.now();
      this.element.replaceChildren(letter);
    } }));
  }
}
