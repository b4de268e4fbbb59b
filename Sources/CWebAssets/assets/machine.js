// SPDX-License-Identifier: Apache-2.0

// The machine's features, and the order of eviction under memory pressure.
import { card, h, s } from "./dom.js";
import { bytes, percent } from "./format.js";
import { get, store } from "./store.js";

const RUNGS = {
  "tell": "tell them", "purge": "purge", "page-out": "page out", "evict": "evict", "end-background": "end (background)",
  "end-inactive": "end (inactive)", "end-active": "end (active)",
};

const sign = (isWell) => s("svg", { viewBox: "0 0 16 16", width: 15, height: 15, class: isWell ? "s-active" : "s-failed", "aria-hidden": "true" },
  s("path", { d: isWell ? "M2.5 8.5l3.6 3.6 7.4-8" : "M8 2.5v7M8 12.3v1.4", fill: "none", stroke: "currentColor", "stroke-width": 2.4, "stroke-linecap": "round", "stroke-linejoin": "round" }));

function ladder(memory) {
  const steps = memory.steps;
  if (!steps.length) return h("p", { class: "muted" }, "Nothing could be done: no running app may be told, paged out or ended.");
  return h("ol", { class: "ladder" }, steps.map((step) => h("li", {},
    h("b", { class: "rung" }, RUNGS[step.rung] ?? step.rung), h("span", { class: "who" }, step.apps.join(", ")),
    h("span", { class: "num muted" }, step.bytes ? bytes(step.bytes) : ""), h("p", { class: "why muted small" }, step.why))));
}

export function machine(main) {
  const checks = h("div", {}, h("p", { class: "muted" }, "…"));
  const next = h("div", {}, h("p", { class: "muted" }, "…"));
  const now = h("div", {}, h("p", { class: "muted" }, "…"));
  main.append(h("div", { class: "head" }, h("h1", {}, "Machine"), h("span", { class: "grow" }), h("button", { type: "button", onclick: () => load() }, "Look again")),
    h("div", { class: "columns" },
      card("torpord", now), card("If memory were short", next)),
    card("What this machine offers", checks));

  async function load() {
    const [info, doctor, memory] = await Promise.allSettled([get("describe"), get("doctor"), get("memory")]);
    const pairs = (list) => h("dl", { class: "facts" }, list.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    if (info.status === "fulfilled") {
      const { version, instance, pid, apps, phase, upgrade_failure } = info.value;
      const m = memory.value?.memory;
      now.replaceChildren(pairs([["Version", version], ["Instance", `${instance} (process ${pid})`], ["Phase", phase], ["Apps", String(apps)],
        ["Memory", m && `${bytes(m.available_bytes)} of ${bytes(m.total_bytes)} available`],
        ["Swap", m && (m.swap_total_bytes ? `${bytes(m.swap_free_bytes)} of ${bytes(m.swap_total_bytes)} free` : "none")],
        ["Pressure", m && (m.some_percent === null ? "the kernel does not report it" : `${m.level === "none" ? "calm" : m.level}; ${percent(m.some_percent)} of the time some tasks wait`)],
        ["Trouble", m?.trouble], ["Last upgrade", upgrade_failure], ["You may", store.supervisor.may_change ? "look and change" : `only look: ${store.supervisor.refusal ?? ""}`]]));
    } else { now.replaceChildren(h("p", { class: "muted" }, info.reason.message)); }
    if (doctor.status === "fulfilled") {
      const list = [...doctor.value.checks].sort((a, b) => Number(a.ok) - Number(b.ok));
      checks.replaceChildren(h("dl", { class: "checks" }, list.map((check) => h("div", {},
        h("dt", { class: "state" }, sign(check.ok), h("b", {}, check.name), h("span", { class: "unseen" }, check.ok ? "is available" : "is missing"), h("span", { class: "muted" }, check.value ?? "")),
        h("dd", { class: "muted small" }, check.message ?? "")))));
    } else { checks.replaceChildren(h("p", { class: "muted" }, doctor.reason.message)); }
    if (memory.status === "fulfilled") {
      const { policy } = memory.value.memory;
      next.replaceChildren(h("p", { class: "muted small" }, `One step at a time, checking memory after each${policy ? `; the order is that of the policy ${policy}` : ""}.`), ladder(memory.value.memory));
    } else { next.replaceChildren(h("p", { class: "muted" }, memory.reason.message)); }
  }
  load();
  return () => {};
}
