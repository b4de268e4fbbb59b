// SPDX-License-Identifier: Apache-2.0

// The page of one app, updated live.
import { Actions } from "./actions.js";
import { card, h, setText, table } from "./dom.js";
import { eventsOf } from "./events.js";
import { Face, aliasOf, summaryOf, titleOf } from "./face.js";
import { ago, bytes, duration, percent, time, uptime } from "./format.js";
import { Log } from "./logs.js";
import { Permissions } from "./permissions.js";
import { report } from "./reports.js";
import { Settings } from "./settings.js";
import { Snapshot } from "./snapshot.js";
import { badge, shown } from "./states.js";
import { appPath, get, on, store, uptimeOf } from "./store.js";
import { Lanes, stateLegend, timeZoom } from "./timeline.js";
import { Transfers } from "./transfers.js";
import { Unhandled } from "./unhandled.js";

const facts = (pairs) => h("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== "–")
  .flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

const asleep = (status) => status.asleep_s
  ? `${duration(status.asleep_s)} of this run${status.cpu_saved_s >= 0.1 ? `, about ${duration(status.cpu_saved_s)} of processor time saved` : ""}${status.paged_out ? `, ${bytes(status.paged_out)} paged out` : ""}`
  : null;

const links = (names) => names.length ? names.flatMap((name, index) => [index ? ", " : "", h("a", { href: `#/app/${encodeURIComponent(name)}` }, name)]) : null;

/** The depth of each process below the main one. */
function depths(processes) {
  const depth = new Map();
  for (const process of processes) depth.set(process.pid, depth.has(process.ppid) ? depth.get(process.ppid) + 1 : 0);
  return (pid) => Math.min(3, depth.get(pid) ?? 0);
}

export function appPage(main, name) {
  const state = h("span", { class: "state" });
  const flight = h("span", { class: "flight", hidden: true });
  const face = new Face(name);
  const title = h("span", {}, name);
  const alias = h("span", { class: "alias" });
  const summary = h("p", { class: "summary", hidden: true });
  const said = h("p", { class: "muted" });
  const actions = new Actions(name, 4);
  const left = h("div");
  const live = h("dl", { class: "facts" });
  const liveValues = new Map();
  const [processes, more, sockets, reports] = [h("div"), h("div"), h("div"), h("div")];
  const eventsBody = h("div");
  const log = new Log(name);
  const lanes = new Lanes(name);
  const snapshot = new Snapshot(name);
  const permissions = new Permissions(name);
  const settings = new Settings(name);
  const transfers = new Transfers(name);
  const unhandled = new Unhandled(name);
  const socketCard = card("Sockets and timers", sockets);
  const missing = h("p", { class: "card empty", hidden: true });
  main.append(
    h("div", { class: "head" }, face.element, h("h1", {}, title, alias), state, flight, h("span", { class: "grow" }), actions.element), summary, said, missing,
    card("States", h("div", {}, lanes.element, stateLegend()), timeZoom(lanes)),
    h("div", { class: "columns" },
      h("div", {}, card("Now", h("div", {}, live, left)), card("Processes", processes), socketCard),
      h("div", {}, snapshot.element, permissions.element, settings.element, card("Events", eventsBody), card("Configuration", more))),
    transfers.element, unhandled.element,
    card("Output", log.box, ...log.tools),
    card("Termination reports", reports));

  function fact(label, value) {
    if (!liveValues.has(label)) {
      const dd = h("dd", { class: "num" });
      liveValues.set(label, dd);
      live.append(h("dt", {}, label), dd);
    }
    setText(liveValues.get(label), value);
  }

  let drawn = "";
  function update() {
    const app = store.apps.get(name);
    missing.hidden = Boolean(app) || !store.isOnline;
    setText(missing, `There is no app ${name} any more.`);
    if (!app) return;
    face.element.hidden = !app.icon;
    face.update(app);
    setText(title, titleOf(app) ?? name);
    setText(alias, aliasOf(app));
    const key = shown(app);
    if (key !== drawn) { state.replaceChildren(badge(key)); drawn = key; }
    flight.hidden = !app.transition;
    setText(flight, app.transition ?? "");
    summary.hidden = !summaryOf(app);
    setText(summary, summaryOf(app) ?? "");
    setText(said, app.status ?? "");
    snapshot.update();
    settings.update();
    actions.update(app);
    fact("Memory", bytes(app.memory_bytes));
    fact("Processor", app.pid === null ? "–" : `${percent(app.cpuPercent)}, ${duration(app.cpu_s)} in all`);
    fact("Uptime", uptime(uptimeOf(app)));
    fact("Goal", app.goal);
    fact("Restarts", String(app.restarts));
    fact("Held by", app.holds.join(", ") || "nothing");
    if (app.last_exit) fact("Ended last", `${app.last_exit.reason}, ${ago(app.last_exit.at)}`);
    if (app.next_restart_ms !== null) fact("Starts again", `in ${duration(app.next_restart_ms / 1000)}`);
  }

  async function load() {
    let status;
    try { ({ status } = await get(appPath(name))); } catch (error) {
      missing.hidden = false;
      setText(missing, error.message);
      return;
    }
    snapshot.show(status.snapshot);
    const depth = depths(status.processes);
    processes.replaceChildren(status.processes.length
      ? table(["Command", ["Process", "right"], "State", ["Threads", "right"]], status.processes.map((process) => h("tr", {},
        h("td", { class: `mono d${depth(process.pid)}` }, process.command), h("td", { class: "right num" }, String(process.pid)),
        h("td", { class: "mono" }, process.state), h("td", { class: "right num" }, String(process.threads)))), { label: "Processes" })
      : h("p", { class: "muted" }, "It has no processes."));
    left.replaceChildren(facts([
      ["Held back", status.held_back],
      ["Health", status.health && `${status.unhealthy ? `it ${status.unhealthy}` : status.health_known ? "good" : "not checked yet"} (${status.health})`],
      ["Asleep", asleep(status)], ["Deadlines", status.deadlines.map((one) => `${one.name}: ${one.remaining_ms === null ? "paused" : `${duration(one.remaining_ms / 1000)} left`}`).join(", ")],
      ["Messages", status.mailbox ? `${status.mailbox} queued` : null], ["Share", status.profile_done.join(", ")],
      ["Not available", status.profile_missing.join(", ")], ["Traced", status.traced ? "by a debugger: its deadlines are off" : null],
      ["Outdated", status.outdated ? "it runs with an older configuration" : null],
      ["Ready after", status.launch?.ready_ms ? duration(status.launch.ready_ms / 1000) : null],
      ["Saved state", status.state_archive && `${bytes(status.state_archive.bytes)}, ${ago(status.state_archive.at)}`],
    ]));
    more.replaceChildren(facts([
      ["Command", h("code", {}, status.exec.join(" "))], ["Declared in", status.file && h("code", {}, `${status.file}:${status.line}`)], ["Tags", status.tags.join(", ")],
      ["Categories", status.categories?.join(", ")], ["Language", status.language],
      ["Container", status.container?.name], ["Image", status.container && h("code", {}, status.container.image + (status.container.digest ? `@${status.container.digest}` : ""))],
      ["Ports", status.container?.ports.join(", ")], ["Networks", status.container?.networks.join(", ")],
      ["Ready by", status.ready], ["Requires", links(status.requires)], ["After", links(status.after)], ["Required by", links(status.required_by)],
      ["Heartbeat", status.watchdog_ms && `every ${duration(status.watchdog_ms / 1000)}`], ["Cgroup", status.cgroup && h("code", {}, status.cgroup)],
    ]));
    reports.replaceChildren(...status.reports.map((one, index) => report(one, index === 0, false)));
    if (!status.reports.length) reports.replaceChildren(h("p", { class: "muted" }, "It has not ended by itself."));
    const { timers } = await get(`timers?app=${encodeURIComponent(name)}`).catch(() => ({ timers: [] }));
    socketCard.hidden = !status.sockets.length && !timers.length;
    sockets.replaceChildren(facts([
      ...status.sockets.map((one) => [`Socket ${one.name}`, `${one.kind} ${one.address}${one.waiting ? `, ${one.waiting} of ${one.limit} wait` : ""}${one.trouble ? `: ${one.trouble}` : ""}`]),
      ...timers.map((one) => [`Timer ${one.name}`, `${one.when}${one.next ? `, next ${time(one.next)}` : ""}`]),
    ]));
  }

  update();
  load();
  let soon;
  const loadSoon = () => { clearTimeout(soon); soon = setTimeout(load, 250); };
  const ends = [
    on("apps", ({ changed }) => {
      update();
      if (changed.some((app) => app.name === name)) loadSoon();
    }),
    on("events", (event) => { if (event?.app === name && event.reason === "snapshot") loadSoon(); }),
    on("supervisor", update), eventsOf(name, eventsBody), () => log.end(), () => lanes.end(), () => permissions.end(), () => transfers.end(),
    () => unhandled.end(), () => clearTimeout(soon),
  ];
  const timer = setInterval(update, 1000);
  return () => { clearInterval(timer); ends.forEach((end) => end()); };
}
