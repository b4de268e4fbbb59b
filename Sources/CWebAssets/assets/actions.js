// SPDX-License-Identifier: Apache-2.0

// Buttons that act on an app, confirmation dialogs, and messages about results.
import { h, setText } from "./dom.js";
import { appPath, post, store } from "./store.js";
import { VERBS, verbs } from "./states.js";

const dialog = document.getElementById("dialog");

/** Shows a message for a while. */
export function toast(text, isBad = false) {
  const element = h("div", { class: isBad ? "toast bad" : "toast" }, text);
  document.getElementById("toasts").append(element);
  setTimeout(() => element.remove(), isBad ? 12000 : 4000);
}

/** Shows a dialog; resolves to the chosen button's value, or "". */
export function ask(title, body, buttons) {
  return new Promise((resolve) => {
    const row = buttons.map(([value, label, look]) =>
      h("button", { value, class: look, autofocus: value === "" }, label));
    dialog.replaceChildren(h("form", { method: "dialog" }, h("h2", { id: "dialog-title" }, title), body, h("div", { class: "row" }, row)));
    dialog.setAttribute("aria-labelledby", "dialog-title");
    // Close the dialog by script: the page's policy forbids submitting forms.
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      dialog.close(event.submitter?.value ?? "");
    });
    dialog.returnValue = "";
    dialog.onclose = () => resolve(dialog.returnValue);
    dialog.showModal();
  });
}

const QUESTIONS = {
  stop: ["Stop", "It is told, gets SIGTERM, and has its grace period to end. Apps that require it are stopped first. It stays stopped until a user starts it."],
  kill: ["Kill", "All its processes get SIGKILL at once. What they have not saved is lost, and no event starts it again until a user does."],
};

/** Runs a verb, after a confirmation if it needs one. */
export async function act(name, verb, body = {}) {
  if (QUESTIONS[verb]) {
    const [word, text] = QUESTIONS[verb];
    const answer = await ask(`${word} ${name}?`, h("p", {}, text), [["", "Cancel", ""], [verb, word, verb === "kill" ? "primary danger-fill" : "primary"]]);
    if (answer !== verb) return;
  }
  if (verb === "hold") body = { for_ms: 600000, reason: "by the dashboard", ...body };
  try {
    await post(appPath(name, `/${verb}`), body);
  } catch (error) {
    toast(`${name}: ${error.message}`, true);
  }
}

/** An app's buttons: the first `visible` ones, and a menu with the rest. */
export class Actions {
  constructor(name, visible) {
    this.name = name;
    this.visible = visible;
    this.element = h("div", { class: "actions" });
    this.key = "";
  }

  update(app) {
    const list = store.supervisor.may_change && store.isOnline ? verbs(app) : [];
    const key = `${list.join()} ${app.transition ?? ""}`;
    if (key === this.key) return;
    this.key = key;
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.verb ?? "…" : null;
    const split = list.length > this.visible + 1 ? this.visible : list.length;
    this.element.replaceChildren(...list.slice(0, split).map((verb) => this.button(verb)));
    if (list.length > split) this.element.append(menu(`More for ${this.name}`, list.slice(split).map((verb) => this.button(verb))));
    if (focused) (this.element.querySelector(`[data-verb="${focused}"]`) ?? this.element.querySelector("button"))?.focus();
  }

  button(verb) {
    const [label, title] = VERBS[verb];
    const button = h("button", {
      type: "button", title, "data-verb": verb, class: verb === "kill" ? "danger" : "", "aria-label": `${label} ${this.name}`,
      onclick: async () => {
        button.disabled = true;
        closeMenus();
        await act(this.name, verb);
        button.disabled = false;
      },
    }, label);
    return button;
  }
}

/** A button that opens a menu. */
function menu(label, buttons) {
  const box = h("div", { hidden: true }, buttons);
  const opener = h("button", { type: "button", class: "dots", "aria-label": label, "aria-expanded": "false", onclick: (event) => {
    const opens = box.hidden;
    closeMenus();
    box.hidden = !opens;
    opener.setAttribute("aria-expanded", String(opens));
    event.stopPropagation();
  } }, "⋯");
  return h("div", { class: "menu" }, opener, box);
}

/** Closes open menus; returns whether one was open. */
export function closeMenus() {
  let any = false;
  for (const box of document.querySelectorAll(".menu > div:not([hidden])")) {
    const opener = box.previousElementSibling;
    if (box.contains(document.activeElement)) opener.focus();
    box.hidden = true;
    opener.setAttribute("aria-expanded", "false");
    any = true;
  }
  return any;
}
document.addEventListener("click", closeMenus);

const announcements = [];
let pending;
/** Announces a text to screen readers, at most every two seconds. */
export function announce(text) {
  announcements.push(text);
  pending ??= setTimeout(() => {
    setText(document.getElementById("live"), announcements.splice(0).slice(-4).join(". "));
    pending = undefined;
  }, 2000);
}
