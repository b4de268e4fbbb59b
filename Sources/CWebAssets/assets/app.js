// SPDX-License-Identifier: Apache-2.0

// The frame: navigation, the connection to torpord, and the theme.
import { toast } from "./actions.js";
import { showAlerts } from "./alerts.js";
import { appPage } from "./apppage.js";
import { h, isDark, s, setText, showTip } from "./dom.js";
import { events } from "./events.js";
import { graph } from "./graph.js";
import { help, listen } from "./keys.js";
import { machine } from "./machine.js";
import { memory } from "./memory.js";
import { overview } from "./overview.js";
import { reports } from "./reports.js";
import { connect, on, post, probe, store } from "./store.js";
import { timeline } from "./timeline.js";
import { transfers } from "./transfers.js";

const PAGES = [
  ["#/", "Apps", overview], ["#/timeline", "Timeline", timeline], ["#/memory", "Memory", memory], ["#/events", "Events", events],
  ["#/reports", "Reports", reports], ["#/transfers", "Transfers", transfers], ["#/graph", "Graph", graph], ["#/machine", "Machine", machine],
];
const main = document.getElementById("main");
const nav = document.getElementById("nav");
const links = new Map(PAGES.map(([hash, label]) => [hash, nav.appendChild(h("a", { href: hash }, label))]));

let leave = () => {};
let isFirst = true;
function show() {
  const hash = location.hash || "#/";
  const app = /^#\/app\/(.+)$/.exec(hash);
  const [key, label, page] = PAGES.find(([address]) => address === hash) ?? PAGES[0];
  leave();
  showTip("");
  main.replaceChildren();
  let title = label;
  if (store.needsToken) {
    leave = enter();
    title = "Access";
  } else if (app) {
    let name = app[1];
    try { name = decodeURIComponent(name); } catch { /* Use it undecoded. */ }
    title = name;
    leave = appPage(main, name);
  } else {
    leave = page(main);
  }
  document.title = `${title} · Torpor`;
  for (const [address, link] of links) {
    if (address === (app ? "#/" : key)) link.setAttribute("aria-current", app ? "true" : "page");
    else link.removeAttribute("aria-current");
  }
  if (!isFirst) { main.focus({ preventScroll: true }); scrollTo(0, 0); }
  isFirst = false;
}

/** The login page. */
function enter() {
  const input = h("input", { type: "password", autocomplete: "current-password", required: true, "aria-label": "Token", placeholder: "Token" });
  const problem = h("p", { class: "muted", role: "alert" });
  const form = h("form", { onsubmit: async (event) => {
    event.preventDefault();
    try {
      await post("session", { token: input.value.trim() });
      store.needsToken = false;
      connect();
      show();
    } catch (error) { problem.textContent = error.message; }
  } }, h("input", { type: "text", autocomplete: "username", value: "torpor", hidden: true, "aria-hidden": "true", tabindex: "-1" }),
  input, h("button", { class: "primary" }, "Enter"));
  main.append(h("section", { class: "card enter", "aria-label": "Access" }, h("h1", {}, "Access"),
    h("p", { class: "muted" }, "Open the link that torpor-web printed at its start, or enter the token here."), form, problem));
  return () => {};
}

const banner = document.getElementById("banner");
const link = document.getElementById("link");
let wasAsked = false;
function tellSupervisor() {
  const { supervisor, isOnline, needsToken } = store;
  if (needsToken !== wasAsked) { wasAsked = needsToken; show(); }
  const isThere = isOnline && supervisor.connected;
  link.classList.toggle("off", !isThere);
  setText(link, needsToken ? "no access" : !isOnline ? "connecting …" : !supervisor.connected ? "torpord is away" : supervisor.may_change ? `live` : "live, read only");
  link.title = isThere ? `torpord ${supervisor.version}, instance ${supervisor.instance}${supervisor.refusal ? `. ${supervisor.refusal}` : ""}` : "";
  const text = needsToken || isThere ? "" : !isOnline ? "The dashboard does not answer. What you see may be out of date; the page reconnects by itself." : `${supervisor.message}. What you see may be out of date; the page reconnects by itself.`;
  banner.hidden = !text || performance.now() < 1500;
  setText(banner, text);
}

const root = document.documentElement;
const button = document.getElementById("theme");
const MOON = "M13.5 10A6 6 0 0 1 6 2.5a6 6 0 1 0 7.5 7.5Z";
function drawTheme() {
  button.replaceChildren(s("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" }, isDark()
    ? [s("circle", { cx: 8, cy: 8, r: 3.2, fill: "currentColor" }), s("path", { d: "M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6 13 13M13 3l-1.4 1.4M4.4 11.6 3 13", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round" })]
    : s("path", { d: MOON, fill: "currentColor" })));
  button.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  button.title = `${button.getAttribute("aria-label")} (t)`;
}
function toggleTheme() {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* The choice is not saved. */ }
  drawTheme();
}
try { root.dataset.theme = localStorage.getItem("theme") ?? ""; } catch { /* Use the system's theme. */ }
if (!root.dataset.theme) delete root.dataset.theme;

drawTheme();
button.addEventListener("click", toggleTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawTheme);
document.getElementById("help").addEventListener("click", help);
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
listen(PAGES.map(([hash]) => hash), toggleTheme);
addEventListener("hashchange", show);
addEventListener("unhandledrejection", (event) => toast(event.reason?.message ?? "something went wrong", true));
on("supervisor", tellSupervisor);
showAlerts();
setInterval(tellSupervisor, 2000);
show();
probe();
