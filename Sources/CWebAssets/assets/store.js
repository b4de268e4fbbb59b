// SPDX-License-Identifier: Apache-2.0

// The page's state: received from the server's stream and kept up to date. Pages subscribe to changes and fetch more.

const target = new EventTarget();
const MOST_EVENTS = 2000;

export const store = {
  apps: new Map(),
  /** Newest last. */
  events: [],
  supervisor: { connected: false },
  isOnline: false,
  needsToken: false,
  sample: null,
};

/** Subscribes to "apps", "events", "supervisor" or "sample"; returns a function that unsubscribes. */
export function on(kind, callback) {
  const listener = (event) => callback(event.detail);
  target.addEventListener(kind, listener);
  return () => target.removeEventListener(kind, listener);
}

const tell = (kind, detail) => target.dispatchEvent(new CustomEvent(kind, { detail }));

function keep(app) {
  const now = performance.now();
  const before = store.apps.get(app.name);
  app.seenAt = now;
  app.cpuPercent = null;
  if (before && before.incarnation === app.incarnation && app.cpu_s !== null && before.cpu_s !== null) {
    // Changes arrive at once: keep the last CPU share if too little time has passed to measure a new one.
    const [since, from] = now - before.measuredAt < 1200 ? [before.measuredAt, before.measuredCPU] : [before.measuredAt, before.measuredCPU];
    if (now - since >= 1200) {
      app.cpuPercent = Math.max(0, (app.cpu_s - from) * 1e5 / (now - since));
      [app.measuredAt, app.measuredCPU] = [now, app.cpu_s];
    } else {
      [app.cpuPercent, app.measuredAt, app.measuredCPU] = [before.cpuPercent, since, from];
    }
  } else {
    [app.measuredAt, app.measuredCPU] = [now, app.cpu_s];
  }
  store.apps.set(app.name, app);
  return before;
}

/** Seconds since the app's launch. */
export function uptimeOf(app) {
  if (app.uptime_s === null || app.uptime_s === undefined) return null;
  return app.uptime_s + (performance.now() - app.seenAt) / 1000;
}

function onSnapshot(data) {
  const names = new Set(data.apps.map((app) => app.name));
  for (const name of [...store.apps.keys()]) if (!names.has(name)) store.apps.delete(name);
  for (const app of data.apps) keep(app);
  store.supervisor = data.supervisor;
  store.isOnline = true;
  tell("supervisor");
  tell("apps", { changed: data.apps, isWhole: true });
  if (!hasPast) loadPast();
}

let hasPast = false;
/** Loads the events from before the page was opened. */
async function loadPast() {
  hasPast = true;
  try {
    const { events } = await get("events?limit=1000");
    const first = store.events[0]?.sequence ?? Infinity;
    store.events.unshift(...events.filter((event) => event.sequence < first));
    tell("past");
  } catch { hasPast = false; }
}

function onApps(data) {
  const changes = [];
  for (const app of data.changed) {
    const before = keep(app);
    if (!before || before.state !== app.state || before.failed !== app.failed) changes.push([before, app]);
  }
  // The server sends changes only: an unchanged app has used no CPU.
  for (const app of store.apps.values()) {
    if (performance.now() - app.measuredAt > 6000 && app.cpuPercent) app.cpuPercent = 0;
  }
  for (const name of data.removed) store.apps.delete(name);
  tell("apps", { changed: data.changed, moved: changes });
}

function onEvent(event) {
  const last = store.events.at(-1);
  if (last && event.sequence <= last.sequence) return;
  store.events.push(event);
  if (store.events.length > MOST_EVENTS + 200) store.events.splice(0, 200);
  tell("events", event);
}

let source;
let retry;
let wait = 500;
/** Connects, and reconnects while the page is open. */
export function connect() {
  clearTimeout(retry);
  source?.close();
  const last = store.events.at(-1)?.sequence;
  // A browser that closes a stream, as after an invalid response, forgets the last event's id: send it explicitly.
  source = new EventSource(last ? `/api/v1/stream?last_event_id=${last}` : "/api/v1/stream");
  const listen = (name, callback) => source.addEventListener(name, (message) => {
    wait = 500;
    callback(JSON.parse(message.data));
  });
  listen("snapshot", onSnapshot);
  listen("apps", onApps);
  listen("event", onEvent);
  listen("supervisor", (data) => { store.supervisor = data; tell("supervisor"); });
  listen("sample", (data) => { store.sample = data; tell("sample", data); });
  source.onerror = () => {
    store.isOnline = false;
    tell("supervisor");
    if (source.readyState !== EventSource.CLOSED) return;
    retry = setTimeout(probe, wait);
    wait = Math.min(wait * 2, 8000);
  };
}

/** Finds out why there is no stream: without access, retrying is useless. */
export async function probe() {
  try {
    const answer = await fetch("/api/v1/describe");
    if (answer.status === 401) {
      store.needsToken = true;
      tell("supervisor");
      return;
    }
  } catch { /* The server is down: retry. */ }
  connect();
}

/** Fetches JSON; throws with the response's error message. */
export async function get(path) {
  const answer = await fetch(`/api/v1/${path}`);
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 401) { store.needsToken = true; tell("supervisor"); }
  if (!answer.ok) throw new Error(body.error ?? `the answer is ${answer.status}`);
  return body;
}

/** Posts a change. */
export async function post(path, body = {}) {
  const answer = await fetch(`/api/v1/${path}`, {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", "X-Torpor-Request": "1" },
  });
  const json = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(json.error ?? `the answer is ${answer.status}`);
  return json;
}

/** The API path of an app. */
export const appPath = (name, rest = "") => `apps/${encodeURIComponent(name)}${rest}`;
