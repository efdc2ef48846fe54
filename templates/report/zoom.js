"use strict";
// The part of the time that all pictures show: one for the whole page.
const zoom = {
  whole: [0, 1], now: [0, 1], followers: [],
  set(begin, end) {
    const [first, last] = this.whole;
    const least = (last - first) / 5000;
    begin = Math.max(first, begin);
    end = Math.min(last, Math.max(end, begin + least));
    if (begin === this.now[0] && end === this.now[1]) return;
    this.now = [begin, end];
    for (const follow of this.followers) follow(begin, end);
  },
  reset() { this.set(...this.whole); },
  by(factor, shift = 0) {
    const [begin, end] = this.now;
    const middle = (begin + end) / 2 + shift * (end - begin);
    const half = ((end - begin) / 2) * factor;
    this.set(middle - half, middle + half);
  },
};

function zoomBar() {
  const button = (text, label, act) => element("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  return element("div", { class: "bar", role: "group", "aria-label": "Zoom" },
    button("+", "Zoom in", () => zoom.by(0.5)), button("−", "Zoom out", () => zoom.by(2)),
    button("◀", "Earlier", () => zoom.by(1, -0.5)), button("▶", "Later", () => zoom.by(1, 0.5)),
    button("All", "Show all of the time", () => zoom.reset()),
    element("span", { class: "soft" }, "or drag across a picture; double click shows all"));
}

// Steps of an axis of time, in seconds: round ones in seconds, minutes and hours.
const STEPS = [...[-3, -2, -1].flatMap((power) => [1, 2, 5].map((n) => n * 10 ** power)),
  1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, ...[1, 2, 7, 14, 28, 90, 365].map((days) => days * 86400)];
const APART = 76; // pixels between two labels of an axis of time, which are short: see `moment`

function ticks(begin, end, most) {
  const rough = (end - begin) / most;
  const step = STEPS.find((n) => n >= rough) || STEPS[STEPS.length - 1];
  const found = [];
  for (let at = Math.ceil(begin / step) * step; at <= end && found.length < 100; at += step) found.push(at);
  return found;
}
