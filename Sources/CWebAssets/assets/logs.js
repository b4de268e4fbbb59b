// SPDX-License-Identifier: Apache-2.0

// The output of an app, updated live.
import { h, setText } from "./dom.js";
import { time } from "./format.js";
import { appPath, get } from "./store.js";

const MOST_LINES = 2000;

/** A view of an app's output; `end()` stops updates. */
export class Log {
  constructor(name) {
    this.name = name;
    this.isPaused = false;
    this.grep = "";
    this.box = h("div", { class: "log", tabindex: "0", role: "log", "aria-live": "off", "aria-label": `Output of ${name}` });
    this.note = h("span", { class: "muted small", role: "status" });
    this.pause = h("button", { type: "button", "aria-pressed": "false", onclick: () => this.setPaused(!this.isPaused) }, "Pause");
    this.search = h("input", { type: "search", placeholder: "Only lines with …", "aria-label": "Show only lines that contain", oninput: () => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => { this.grep = this.search.value; this.begin(); }, 250);
    } });
    this.tools = [this.note, this.search, this.pause];
    this.begin();
  }

  end() {
    this.hasEnded = true;
    clearTimeout(this.timer);
    clearTimeout(this.typing);
  }

  setPaused(isPaused) {
    this.isPaused = isPaused;
    this.pause.setAttribute("aria-pressed", String(isPaused));
    setText(this.pause, isPaused ? "Continue" : "Pause");
    if (!isPaused) this.poll();
  }

  begin() {
    clearTimeout(this.timer);
    this.run = (this.run ?? 0) + 1;
    this.cursor = null;
    this.box.replaceChildren();
    this.poll();
  }

  async poll() {
    clearTimeout(this.timer);
    const run = this.run;
    let wait = 700;
    try {
      const query = new URLSearchParams(this.cursor ? { cursor: this.cursor } : { lines: "300" });
      if (this.grep) query.set("grep", this.grep);
      const { lines, cursor } = await get(`${appPath(this.name, "/logs")}?${query}`);
      if (run !== this.run) return;
      this.cursor = cursor;
      this.add(lines);
      setText(this.note, this.box.childElementCount ? "" : this.grep ? "no such lines yet" : "it has written nothing yet");
    } catch (error) {
      if (run !== this.run) return;
      setText(this.note, error.message);
      wait = 3000;
    }
    // Poll less often in a hidden tab.
    if (!this.hasEnded && !this.isPaused) this.timer = setTimeout(() => this.poll(), document.hidden ? 5000 : wait);
  }

  add(lines) {
    if (!lines.length) return;
    const isAtEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 30;
    this.box.append(...lines.map((line) => h("div", { class: line.stream === "stderr" ? "stderr" : null },
      h("time", {}, line.at ? time(line.at) : ""), h("span", {}, this.marked(line.text)))));
    while (this.box.childElementCount > MOST_LINES) this.box.firstElementChild.remove();
    if (isAtEnd) this.box.scrollTop = this.box.scrollHeight;
  }

  marked(text) {
    if (!this.grep) return [text];
    return text.split(this.grep).flatMap((part, index) => index ? [h("mark", { class: "hit" }, this.grep), part] : [part]);
  }
}
