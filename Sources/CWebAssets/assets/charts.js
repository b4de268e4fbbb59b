// SPDX-License-Identifier: Apache-2.0

// Line and area charts over time, with marks for evictions and gaps without samples.
import { h, s, showTip } from "./dom.js";
import { bytes, time } from "./format.js";
import { ticks } from "./timeline.js";

const LEFT = 64;
const RIGHT = 10;
const FOOT = 22;

/** The end of an axis and the step of its grid lines: round numbers, for bytes in units of 1024. */
function scale(most, isBytes) {
  const base = isBytes ? 2 : 10;
  const rough = Math.max(1e-9, most) / 3;
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const step = isBytes ? (power * 2 * 3.2 < most ? power * 2 : power) : [1, 2, 5, 10].map((part) => part * power).find((size) => size >= rough);
  return [Math.max(1, Math.ceil(most / step - .02)) * step, step];
}

/** A chart. `series`: {label, look, value(sample), isArea}; areas are stacked. */
export class Chart {
  constructor({ title, height, series, most, format }) {
    Object.assign(this, { title, height, series, most, format });
    this.svg = s("svg", { class: "chart", height, role: "img", "aria-label": title });
    this.element = h("div", {}, this.svg);
    this.data = { samples: [], evictions: [], gaps: [], from: 0, to: 1 };
    this.svg.addEventListener("pointermove", (event) => this.hover(event));
    this.svg.addEventListener("pointerleave", () => { this.at = null; showTip(""); this.draw(); });
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.element);
  }

  end() {
    this.resize.disconnect();
    showTip("");
  }

  show(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    const { samples, evictions, gaps, from, to } = this.data;
    const width = Math.max(260, this.element.clientWidth);
    const bottom = this.height - FOOT;
    const [most, step] = scale(this.most(samples), this.format === bytes);
    this.x = (at) => LEFT + (width - LEFT - RIGHT) * (at - from) / (to - from);
    const y = (value) => bottom - (bottom - 12) * Math.min(1, value / most);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    const parts = Array.from({ length: Math.round(most / step) + 1 }, (_, index) => index * step).flatMap((value) => [
      s("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
      s("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, value ? this.format(value) : "0"),
    ]);
    for (const [at, text] of ticks(from, to, width)) {
      parts.push(s("text", { x: this.x(at), y: this.height - 5, "text-anchor": "middle" }, text));
    }
    for (const gap of gaps) {
      const left = Math.max(LEFT, this.x(gap.from));
      const wide = Math.min(width - RIGHT, this.x(gap.to ?? to)) - left;
      if (wide > 1) parts.push(s("rect", { class: "gap", x: left, y: 12, width: wide, height: bottom - 12 }, s("title", {}, gap.why)));
    }
    for (const run of this.runs(samples)) this.drawRun(parts, run, y);
    let label = null;
    for (const eviction of evictions) {
      const at = this.x(eviction.at);
      if (at < LEFT || at > width - RIGHT) continue;
      parts.push(s("line", { class: "mark", x1: at, x2: at, y1: 12, y2: bottom }, s("title", {}, `${eviction.app} ${eviction.text}`)));
      // Marks that are close together share one label, which stands after the last mark.
      if (!label || at - label.at > 90) {
        label = { at, names: [], text: s("text", { class: "marked", y: 22 }) };
        parts.push(label.text);
      }
      if (!label.names.includes(eviction.app)) label.names.push(eviction.app);
      const isLate = at > width - 150;
      label.text.setAttribute("x", isLate ? label.at - 5 : at + 5);
      label.text.setAttribute("text-anchor", isLate ? "end" : "start");
      const more = label.names.length - 2;
      label.text.textContent = `✕ ${label.names.slice(0, 2).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
    }
    if (this.at) parts.push(s("line", { class: "cursor", x1: this.x(this.at), x2: this.x(this.at), y1: 12, y2: bottom }));
    this.svg.replaceChildren(...parts);
    const last = samples.at(-1);
    if (last) this.svg.setAttribute("aria-label", `${this.title}. Now: ${this.series.map((one) => `${one.label} ${this.format(one.value(last) ?? 0)}`).join(", ")}`);
  }

  /** Splits samples at gaps. */
  runs(samples) {
    const runs = [];
    let run = [];
    for (const sample of samples) {
      if (run.length && sample.at - run.at(-1).at > 15e6) { runs.push(run); run = []; }
      run.push(sample);
    }
    if (run.length) runs.push(run);
    // Draw no more points than can be seen.
    return runs.map((points) => {
      const step = Math.ceil(points.length / 600);
      return points.filter((_, index) => index % step === 0 || index === points.length - 1);
    });
  }

  drawRun(parts, run, y) {
    const bases = run.map(() => 0);
    for (const one of this.series) {
      const values = run.map((sample) => one.value(sample) ?? 0);
      const point = (value, index) => `${this.x(run[index].at).toFixed(1)} ${y(value).toFixed(1)}`;
      if (!one.isArea) {
        parts.push(s("path", { class: `curve ${one.look}`, "fill-opacity": 0, d: `M${values.map(point).join("L")}` }));
        continue;
      }
      const tops = values.map((value, index) => bases[index] + value);
      const back = bases.map(point).reverse();
      parts.push(s("path", { class: one.look, "stroke-width": 0, d: `M${tops.map(point).join("L")}L${back.join("L")}Z` }));
      tops.forEach((top, index) => { bases[index] = top; });
    }
  }

  hover(event) {
    const box = this.svg.getBoundingClientRect();
    const at = event.clientX - box.left;
    let near = null;
    for (const sample of this.data.samples) {
      if (!near || Math.abs(this.x(sample.at) - at) < Math.abs(this.x(near.at) - at)) near = sample;
    }
    if (!near || Math.abs(this.x(near.at) - at) > 40) { this.at = null; showTip(""); return; }
    this.at = near.at;
    this.draw();
    const lines = [...this.series].reverse().filter((one) => one.value(near)).map((one) => `${one.label}: ${this.format(one.value(near))}`);
    showTip([time(near.at), ...lines].join("\n"), event.clientX, event.clientY);
  }

  legend() {
    return h("div", { class: "legend" }, [...this.series].reverse().map((one) =>
      h("span", {}, s("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, s("rect", { class: one.look, width: 12, height: one.isArea ? 12 : 4, y: one.isArea ? 0 : 4, rx: 2 })), one.label)));
  }
}
