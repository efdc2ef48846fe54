"use strict";
// What each task did when: a lane for each, over one axis of time.
const STATES = ["starting", "ready", "training", "scoring", "waiting", "silent", "paused", "restarting", "broken"];
const MARKS = { drill: "⚡ broken by the drill", fault: "✖ fault", asked: "● asked for, by a person or the drill", restart: "▲ started again", retry: "▲ retry", checkpoint: "◆ checkpoint that still exists", evaluation: "● evaluation", epoch: "| epoch", straggler: "■ straggler" };
const LABEL = 116, ROW = 24, TOP = 20, RIGHT = 32; // the label of the last moment ends there

const stateClass = (state) => (STATES.includes(state) ? state : "other");

function symbol(kind, x, y) {
  const path = {
    fault: `M${x - 5} ${y - 5}l10 10m0-10l-10 10`, restart: `M${x} ${y - 6}l6 11h-12z`, retry: `M${x} ${y - 6}l6 11h-12z`,
    checkpoint: `M${x} ${y - 6}l5 6-5 6-5-6z`, epoch: `M${x - 0.7} ${y - 9}h1.4v18h-1.4z`, straggler: `M${x - 4} ${y - 4}h8v8h-8z`,
    drill: `M${x + 3} ${y - 9}l-8 11h4l-3 8 9-12h-4l4-7z`,
  }[kind];
  if (!path) return drawn("circle", { class: `mark ${kind}`, cx: x, cy: y, r: 4.5 });
  const mark = drawn("path", { class: `mark ${kind}`, d: path });
  if (kind === "fault") mark.setAttribute("style", "stroke: var(--bad); stroke-width: 2.5; fill: none");
  if (kind === "epoch") mark.setAttribute("style", "stroke: none; opacity: .45");
  return mark;
}

function summary(task) {
  const times = new Map();
  for (const span of [...task.spans, ...task.over]) times.set(span.state, (times.get(span.state) || 0) + span.end - span.begin);
  const counts = new Map();
  for (const mark of task.marks) counts.set(mark.kind, (counts.get(mark.kind) || 0) + 1);
  const said = [...times].map(([state, time]) => `${state} ${seconds(time)}`);
  return `${task.name}: ${[...said, ...[...counts].map(([kind, count]) => `${count} × ${kind}`)].join(", ") || "never ran"}`;
}

function lanes(run) {
  const height = TOP + run.tasks.length * ROW + 6;
  const svg = drawn("svg", { role: "group", "aria-label": `What each task of ${run.cluster} did when`, height, class: "lanes" });
  const holder = element("div", { class: "scroll" }, svg);
  let from = null;
  const width = () => Math.max(320, holder.clientWidth || 1100);
  const scale = () => { const [a, b] = zoom.now; return (at) => LABEL + ((at - a) / (b - a)) * (width() - LABEL - RIGHT); };
  const timeAt = (event) => { const [a, b] = zoom.now; const box = svg.getBoundingClientRect(); return a + ((event.clientX - box.left - LABEL) / (width() - LABEL - RIGHT)) * (b - a); };
  const draw = () => {
    const x = scale(), [a, b] = zoom.now, w = width();
    svg.setAttribute("width", w);
    svg.setAttribute("viewBox", `0 0 ${w} ${height}`);
    svg.replaceChildren(
      ...ticks(a, b, (w - LABEL - RIGHT) / APART).flatMap((at) => [
        drawn("line", { class: "axis", x1: x(at), x2: x(at), y1: TOP - 4, y2: height }),
        drawn("text", { class: "soft", x: x(at), y: 12, "text-anchor": "middle" }, moment(at, b))]),
      ...run.tasks.map((task, row) => lane(task, TOP + row * ROW, x, w)));
  };
  const lane = (task, y, x, w) => {
    const inside = (span) => span.end > zoom.now[0] && span.begin < zoom.now[1];
    const box = (span, over) => {
      const left = Math.max(x(span.begin), LABEL), end = Math.min(x(span.end), w - RIGHT);
      const shape = drawn("rect", { class: `state ${over ? "over " : ""}${stateClass(span.state)}`, x: left, y: y + (over ? 13 : 3), width: Math.max(end - left, 1), height: over ? 6 : ROW - 7, rx: 2, "data-state": span.state });
      const said = `${task.name} ${span.state}\n${seconds(span.end - span.begin)}, from ${seconds(span.begin)} to ${seconds(span.end)}`;
      return explained(shape, span.text ? `${said}\n${span.text}` : said);
    };
    const mark = (one) => explained(Object.assign(symbol(one.kind, x(one.at), y + ROW / 2 - 1)), `${task.name}, ${seconds(one.at)}\n${one.text}`);
    const group = drawn("g", { class: "lane", tabindex: 0, role: "img", "aria-label": summary(task), "data-task": task.name },
      drawn("text", { x: 0, y: y + 15 }, task.name),
      ...task.spans.filter(inside).map((span) => box(span, false)), ...task.over.filter(inside).map((span) => box(span, true)),
      ...task.marks.filter((one) => one.at >= zoom.now[0] && one.at <= zoom.now[1]).map(mark));
    group.addEventListener("keydown", (event) => {
      const act = { ArrowLeft: () => zoom.by(1, -0.25), ArrowRight: () => zoom.by(1, 0.25), "+": () => zoom.by(0.5), "-": () => zoom.by(2), "0": () => zoom.reset() }[event.key];
      if (act) { event.preventDefault(); act(); [...svg.querySelectorAll(".lane")].find((one) => one.dataset.task === task.name)?.focus(); }
    });
    return group;
  };
  svg.addEventListener("pointerdown", (event) => { from = timeAt(event); });
  svg.addEventListener("pointerup", (event) => {
    const to = timeAt(event), [a, b] = zoom.now;
    if (from !== null && Math.abs(to - from) > (b - a) / 100) zoom.set(Math.min(from, to), Math.max(from, to));
    from = null;
  });
  svg.addEventListener("dblclick", () => zoom.reset());
  zoom.followers.push(draw);
  new ResizeObserver(draw).observe(holder);
  return holder;
}

function faultTable(run) {
  if (!run.faults.length) return null;
  const after = (value) => right(value === null ? "–" : seconds(value));
  const rows = run.faults.map((one) => [`${one.number} ${one.kind}`, one.task, right(seconds(one.at)), after(one.over === null ? null : one.over - one.at),
    after(one.detected_after_s), after(one.going_on_after_s), right(String(one.steps_lost ?? "–"))]);
  const broken = table(["fault", "task", "at", "lasted", "noticed after", "going on after", "steps lost"], rows, "What the drill has broken");
  return element("div", {}, ...(run.goodput || []).map((sentence) => element("p", { class: "goodput" }, sentence)), broken);
}

function laneKey(runs) {
  const states = new Set(), marks = new Set();
  for (const run of runs) for (const task of run.tasks) {
    for (const span of [...task.spans, ...task.over]) states.add(span.state);
    for (const mark of task.marks) marks.add(mark.kind);
  }
  return element("div", { class: "bar", "aria-hidden": "true" },
    ...[...states].map((state) => element("span", { class: `key ${stateClass(state)}` }, element("i"), state)),
    ...[...marks].map((kind) => element("span", { class: "key" }, MARKS[kind] || kind)));
}
