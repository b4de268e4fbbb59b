// SPDX-License-Identifier: Apache-2.0

// Formats numbers and times.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  let unit = 0;
  while (count >= 1024 && unit < UNITS.length - 1) { count /= 1024; unit += 1; }
  return `${count < 10 && unit > 1 ? count.toFixed(1).replace(".0", "") : Math.round(count)} ${UNITS[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A duration in whole seconds, so that texts redrawn each second do not flicker. */
export const uptime = (seconds) => duration(seconds === null || seconds === undefined ? null : Math.max(1, Math.floor(seconds)))
  .replace(".0 s", " s");

const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const SHORT = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** The local time for microseconds since 1970, with the date unless it is today. */
export function time(micros, isShort = false) {
  if (!micros) return "–";
  const date = new Date(micros / 1000);
  const clock = (isShort ? SHORT : CLOCK).format(date);
  return date.toDateString() === new Date().toDateString() ? clock : `${DAY.format(date)}, ${clock}`;
}

export function ago(micros) {
  if (!micros) return "never";
  const seconds = Math.max(0, Date.now() / 1000 - micros / 1e6);
  return seconds < 5 ? "just now" : `${uptime(seconds).replace(/ \d+ (s|min)$/, (rest, unit) => seconds < 3600 && unit === "s" ? "" : "")} ago`;
}

export const percent = (value) => value === null || value === undefined ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} %`;

export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
