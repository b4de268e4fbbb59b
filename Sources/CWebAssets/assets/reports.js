// SPDX-License-Identifier: Apache-2.0

// Termination reports: why apps ended unexpectedly.
import { h } from "./dom.js";
import { bytes, duration, time } from "./format.js";
import { get, on } from "./store.js";

const facts = (list) => h("dl", { class: "facts" }, list.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== "–")
  .flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

/** A report: a summary line that unfolds into the details. */
export function report(one, isOpen, withApp = true) {
  const code = one.code ? ` (0x${one.code.toString(16)})` : "";
  const how = one.signal ? `by ${one.signal}${one.core_dumped ? ", with a core" : ""}` : one.exit_code !== null ? `with status ${one.exit_code}` : null;
  const body = h("div", {}, facts([
    ["Why", one.text], ["Ended", how], ["State", [one.state, one.transition].filter(Boolean).join(", ")], ["Failed at", one.stage],
    ["Due", one.due && `${one.due} within ${duration(one.deadline_ms / 1000)}${one.late_ms === null ? "" : `; ${one.answered ? "came" : "had not come"} ${duration(one.late_ms / 1000)} after it`}`],
    ["Process", one.pid && `${one.pid}, ran for ${duration(one.wall_s)}, used ${duration(one.cpu_s)} of a processor`],
    ["Memory", one.memory_bytes === null ? null : `${bytes(one.memory_bytes)}, at most ${bytes(one.max_memory_bytes)}`],
    ["Said last", one.status], ["Tasks", one.tasks.join(", ")],
    ["Locks", one.locks.map((lock) => `${lock.kind} on ${lock.file}${lock.waiter ? `, process ${lock.waiter} waited` : ""}`).join("; ")],
  ]));
  if (one.timeline.length) {
    body.append(h("h3", { class: "small muted" }, "What led to it"), h("ol", { class: "mono small" }, one.timeline.slice(-25).map((entry) =>
      h("li", {}, `${entry.after_s === null ? "…" : `${entry.after_s.toFixed(3)} s`}  ${entry.kind}${entry.name ? ` ${entry.name}` : ""}`))));
  }
  for (const thread of one.threads) {
    body.append(h("h3", { class: "small muted" }, `Thread ${thread.tid} (${thread.name}), ${thread.state}${thread.wait_channel ? `, waits in ${thread.wait_channel}` : ""}`),
      h("div", { class: "log", tabindex: "0", role: "region", "aria-label": `Stack of thread ${thread.tid}` }, [...thread.stack, ...thread.user_stack].map((text) => h("div", {}, text))));
  }
  if (one.log.length) {
    body.append(h("h3", { class: "small muted" }, "Its last output"), h("div", { class: "log", tabindex: "0", role: "region", "aria-label": "Its last output" },
      one.log.map((line) => h("div", { class: line.stream === "stderr" ? "stderr" : null }, h("time", {}, line.at ? time(line.at) : ""), h("span", {}, line.text)))));
  }
  return h("details", { class: "report", open: isOpen }, h("summary", {}, h("b", {}, withApp ? `${one.app}, run ${one.incarnation}` : `Run ${one.incarnation}`),
    h("span", {}, `${one.reason}${code}`), h("span", { class: "muted num" }, time(one.at))), body);
}

export function reports(main) {
  const body = h("div", {}, h("p", { class: "empty" }, "…"));
  main.append(h("div", { class: "head" }, h("h1", {}, "Reports"), h("p", { class: "muted" }, "Why apps ended without being asked to; the newest ten reports of each app.")), body);
  async function load() {
    try {
      const { reports } = await get("reports");
      body.replaceChildren(...reports.map((one, index) => h("section", { class: "card", "aria-label": `Report of ${one.app}` }, report(one, index === 0))));
      if (!reports.length) body.replaceChildren(h("p", { class: "card empty" }, "No app has ended by itself. Good."));
    } catch (error) { body.replaceChildren(h("p", { class: "card empty" }, error.message)); }
  }
  load();
  let soon;
  return on("events", (event) => {
    if (event.kind !== "exit") return;
    clearTimeout(soon);
    soon = setTimeout(load, 500);
  });
}
