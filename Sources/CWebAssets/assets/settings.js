// SPDX-License-Identifier: Apache-2.0

// An app's settings, as a form for users who may change them.
import { toast } from "./actions.js";
import { card, h, setText } from "./dom.js";
import { appPath, get, post, store } from "./store.js";

/** The text in the reader's language, if there is one. */
function local(texts, fallback) {
  for (const language of navigator.languages ?? []) {
    const tag = language.toLowerCase();
    const text = texts?.[tag] ?? texts?.[tag.split("-")[0]];
    if (text) return text;
  }
  return fallback;
}

export class Settings {
  constructor(name) {
    this.name = name;
    this.fields = new Map();
    this.said = h("p", { class: "muted", role: "status" });
    this.rows = h("div", { class: "settings" });
    this.form = h("form", { class: "settings-form" }, this.rows,
      h("div", { class: "row" }, this.said, h("span", { class: "grow" }), h("button", { type: "submit", class: "primary" }, "Save")));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.save();
    });
    this.element = card("Settings", this.form);
    this.element.hidden = true;
    this.isLoaded = false;
  }

  /** Loads the settings once when the page is shown, and again after each change. */
  update() {
    if (this.isLoaded || !store.isOnline || !store.supervisor.may_change) return;
    this.isLoaded = true;
    this.load();
  }

  async load() {
    try {
      const { settings } = await get(appPath(this.name, "/settings"));
      this.draw(settings);
    } catch {
      this.isLoaded = false;
    }
  }

  draw(settings) {
    this.element.hidden = settings.length === 0;
    this.fields.clear();
    this.rows.replaceChildren(...settings.map((setting) => this.row(setting)));
  }

  row(setting) {
    const id = `setting-${setting.key}`;
    const isSecret = setting.type === "secret";
    const input = this.input(setting, id);
    const reset = setting.set
      ? h("button", { type: "button", class: "link", "aria-label": `Unset ${setting.key}`, onclick: () => this.send({ unset: [setting.key] }) }, "Unset")
      : null;
    this.fields.set(setting.key, { input, before: isSecret ? "" : setting.text ?? "" });
    const notes = [local(setting.helps, setting.help), setting.default !== null ? `Default: ${setting.default}` : null,
      isSecret ? (setting.set ? "It is set." : "It is not set.") : null,
      setting.restart ? "A change restarts the app." : null, setting.trouble ? `It counts as not set: ${setting.trouble}` : null];
    return h("div", { class: "setting" },
      h("label", { for: id }, local(setting.titles, setting.title) ?? setting.key), input, reset,
      h("small", { class: "muted" }, notes.filter(Boolean).join(" ")));
  }

  input(setting, id) {
    const name = setting.key;
    const words = setting.type === "boolean" ? ["true", "false"] : setting.choices;
    if (words.length > 0) {
      const options = setting.text === null ? ["", ...words] : words;
      const select = h("select", { id, name }, options.map((word) => h("option", { value: word }, word)));
      select.value = setting.text ?? "";
      return select;
    }
    const input = h("input", { id, name, type: setting.type === "secret" ? "password" : "text", autocomplete: "off", spellcheck: "false" });
    input.value = setting.type === "secret" ? "" : setting.text ?? "";
    return input;
  }

  save() {
    const values = {};
    for (const [key, { input, before }] of this.fields) if (input.value !== before) values[key] = input.value;
    if (Object.keys(values).length === 0) return setText(this.said, "Nothing changed.");
    this.send({ values });
  }

  async send(body) {
    setText(this.said, "Saving …");
    try {
      const { changed, message } = await post(appPath(this.name, "/settings"), body);
      setText(this.said, changed.length ? `${changed.join(", ")} changed${message ? `; ${message}` : ""}` : "Nothing changed.");
      await this.load();
    } catch (error) {
      setText(this.said, "");
      toast(`${this.name}: ${error.message}`, true);
    }
  }
}
