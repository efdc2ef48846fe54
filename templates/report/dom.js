"use strict";
// Small helpers: elements, figures as words. Text is only ever set as text, never as HTML.
// Characters that reverse the order of others, or are not seen; a task's words may have them.
const INVISIBLE = /[\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const SVG = "http://www.w3.org/2000/svg";

function element(name, properties = {}, ...children) {
  const made = properties.svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "svg" || value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  const shown = children.filter((child) => child !== null && child !== undefined);
  made.append(...shown.map((child) => typeof child === "string" ? child.replace(INVISIBLE, "") : child));
  return made;
}

const drawn = (name, properties = {}, ...children) => element(name, { ...properties, svg: true }, ...children);

// How long a whole run took, in the words of the command line.
function took(run) {
  const value = run.timings_s.total ?? run.seconds;
  return value < 99.95 ? `${value.toFixed(1)} s` : seconds(value);
}

function seconds(value) {
  if (value < 100) return `${Number(value.toFixed(value < 10 ? 2 : 1))} s`;
  const whole = Math.round(value);
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h ? `${h} h ${m} min` : `${m} min ${s} s`;
}

// A moment on an axis of time that ends at `until`: `40 s`, `1:40 min`, `2:05 h`.
function moment(value, until) {
  if (until <= 100) return seconds(value);
  const two = (number) => String(number).padStart(2, "0");
  const whole = Math.round(value * 100) / 100, left = whole % 60, part = left % 1 ? left.toFixed(2).padStart(5, "0") : two(left);
  if (until < 3600) return `${Math.floor(whole / 60)}:${part} min`;
  const h = Math.floor(whole / 3600), m = two(Math.floor(whole / 60) % 60);
  return left ? `${h}:${m}:${part}` : `${h}:${m} h`;
}

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (Math.abs(value) >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
  return `${at ? Number(value.toPrecision(3)) : Math.round(value)} ${units[at]}`;
}

// Four digits, and more of what they would round to 1: a score of 0.99997 is not a perfect one.
function digits(value) {
  const enough = [4, 5, 6, 7].find((count) => Number(value.toPrecision(count)) !== 1) ?? 8;
  return value < 1 ? enough : 4;
}

function figure(value, unit = "") {
  if (value === null || value === undefined) return "–";
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes/s") return `${bytes(value)}/s`;
  if (unit === "share") return `${Math.round(value * 100)} %`;
  if (typeof value !== "number") return String(value);
  const shown = Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(digits(value))));
  return unit && unit !== "/s" ? `${shown} ${unit}` : shown + unit;
}

function table(headings, rows, caption) {
  const cell = (kind, value) => {
    if (value instanceof Node) return element(kind, {}, value);
    const number = typeof value === "object" && value !== null;
    return element(kind, { class: number ? "figure" : null }, number ? value.figure : String(value ?? "–"));
  };
  return element("div", { class: "scroll" }, element("table", {},
    caption ? element("caption", { class: "soft" }, caption) : null,
    element("thead", {}, element("tr", {}, ...headings.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((value) => cell("td", value)))))));
}

// `1 task`, `2 tasks`.
const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

const right = (text) => ({ figure: text });

// One tooltip for all: shown at the pointer, and at what has the focus.
const tip = element("div", { id: "tip", role: "status" });
function explained(target, text) {
  const show = (x, y) => {
    tip.textContent = text;
    tip.style.display = "block";
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 8 : y + 18}px`;
  };
  target.addEventListener("pointermove", (event) => show(event.clientX, event.clientY));
  target.addEventListener("pointerleave", () => { tip.style.display = "none"; });
  target.addEventListener("focus", () => { const box = target.getBoundingClientRect(); show(box.left, box.bottom - 14); });
  target.addEventListener("blur", () => { tip.style.display = "none"; });
  return target;
}
