// SPDX-License-Identifier: Apache-2.0

// Memory and pressure over time, and each app's part.
import { h, table } from "./dom.js";
import { bytes, percent } from "./format.js";
import { Chart } from "./charts.js";
import { zoom } from "./timeline.js";
import { badge } from "./states.js";
import { get, on } from "./store.js";

const WINDOWS = { "5 min": 300, "15 min": 900, "1 h": 3600 };
const choice = { window: "5 min" };
const MOST_APPS = 7;
const looks = new Map();

/** An app's colour, which stays the same while the app is among the largest. */
function look(name, chosen) {
  for (const other of [...looks.keys()]) if (!chosen.includes(other)) looks.delete(other);
  const used = new Set(looks.values());
  if (!looks.has(name)) looks.set(name, [0, 1, 2, 3, 4, 5, 6].find((index) => !used.has(index)) ?? 6);
  return `c${looks.get(name)}`;
}

/** The apps with the most memory in these samples. */
function largest(samples) {
  const sums = new Map();
  for (const sample of samples) {
    for (const [name, size] of Object.entries(sample.apps)) if (name) sums.set(name, (sums.get(name) ?? 0) + size);
  }
  return [...sums].sort((a, b) => b[1] - a[1]).slice(0, MOST_APPS).map(([name]) => name);
}

const sum = (sample) => Object.values(sample.apps).reduce((all, size) => all + size, 0);

export function memory(main) {
  const machine = new Chart({
    title: "Memory of the machine", height: 190, format: bytes, most: (samples) => samples.at(-1)?.total_bytes ?? 1,
    series: [
      { label: "apps", look: "c0", isArea: true, value: sum },
      { label: "everything else", look: "rest", isArea: true, value: (sample) => Math.max(0, sample.total_bytes - sample.available_bytes - sum(sample)) },
      { label: "swap in use", look: "c5", value: (sample) => sample.swap_used_bytes },
    ],
  });
  const apps = new Chart({
    title: "Memory of the apps", height: 230, format: bytes, series: [],
    most: (samples) => 1.02 * Math.max(1, ...samples.map(sum)),
  });
  const pressure = new Chart({
    title: "Pressure: share of the time in which tasks waited for memory", height: 190, format: percent,
    most: (samples) => Math.max(10, ...samples.map((sample) => sample.some_percent ?? 0)),
    series: [
      { label: "all wait", look: "c5", value: (sample) => sample.full_percent },
      { label: "some wait", look: "c1", value: (sample) => sample.some_percent },
    ],
  });
  const legend = h("div");
  const who = h("div", {}, h("p", { class: "muted" }, "…"));
  const note = h("p", { class: "muted small" });
  let all = { samples: [], evictions: [], gaps: [] };
  let names = "";

  function show() {
    const to = Date.now() * 1000;
    const from = to - WINDOWS[choice.window] * 1e6;
    const samples = all.samples.filter((sample) => sample.at >= from);
    const data = { ...all, samples, from, to };
    const chosen = largest(samples);
    if (chosen.join() !== names) {
      names = chosen.join();
      apps.series = chosen.map((name) => ({ label: name, look: look(name, chosen), isArea: true, value: (sample) => sample.apps[name] ?? 0 }));
      apps.series.push({ label: "others", look: "c7", isArea: true,
        value: (sample) => Object.entries(sample.apps).reduce((rest, [name, size]) => chosen.includes(name) ? rest : rest + size, 0) });
      legend.replaceChildren(apps.legend());
    }
    for (const chart of [machine, apps, pressure]) chart.show(data);
    const last = samples.at(-1);
    note.textContent = last && last.some_percent === null ? "This kernel does not report how long tasks wait for memory (PSI)." : "";
  }

  async function load() {
    try {
      all = await get("samples");
      show();
      const { memory } = await get("memory");
      who.replaceChildren(table(["App", "State", ["In memory", "right"], ["In swap", "right"], ["Limit", "right"], ["Priority", "right"], "When memory is short"],
        memory.apps.map((app) => h("tr", {}, h("td", {}, h("a", { href: `#/app/${encodeURIComponent(app.app)}` }, app.app)), h("td", {}, badge(app.state)),
          h("td", { class: "right num" }, bytes(app.resident_bytes)), h("td", { class: "right num" }, bytes(app.swapped_bytes)),
          h("td", { class: "right num" }, bytes(app.limit_bytes)), h("td", { class: "right num" }, String(app.priority)),
          h("td", { class: "muted small" }, app.protection ?? (app.ends_at_once ? "may be ended, without notice" : "may be ended")))), { label: "Memory of each app" }));
    } catch (error) { who.replaceChildren(h("p", { class: "muted" }, error.message)); }
  }

  main.append(
    h("div", { class: "head" }, h("h1", {}, "Memory"), h("span", { class: "grow" }),
      zoom(Object.keys(WINDOWS), (label) => label === choice.window, (label) => { choice.window = label; show(); })),
    h("section", { class: "card", "aria-label": "Apps over time" }, h("header", {}, h("h2", {}, "Apps")), apps.element, legend),
    h("div", { class: "columns" },
      h("section", { class: "card", "aria-label": "Machine over time" }, h("header", {}, h("h2", {}, "Machine")), machine.element, machine.legend()),
      h("section", { class: "card", "aria-label": "Pressure over time" }, h("header", {}, h("h2", {}, "Pressure")), pressure.element, pressure.legend(), note)),
    h("section", { class: "card", "aria-label": "Memory by app" }, h("header", {}, h("h2", {}, "Memory by app")), who));
  load();
  const ends = [
    on("sample", (sample) => {
      all.samples.push(sample);
      if (all.samples.length > 2000) all.samples.splice(0, 100);
      show();
    }),
    on("events", (event) => {
      const steps = ["evict", "end-background", "end-inactive", "end-active"];
      if (event.kind === "memory" && event.app && steps.includes(event.reason)) all.evictions.push(event);
    }),
    () => [machine, apps, pressure].forEach((chart) => chart.end()),
  ];
  return () => ends.forEach((end) => end());
}
