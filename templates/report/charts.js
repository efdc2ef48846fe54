"use strict";
// Figures over the same time, drawn by uPlot.
const COLOURS = ["#2f7ed8", "#d9612b", "#2f9e62", "#8a5fd0", "#c2a21e", "#d3458b", "#23a3b5", "#7a8793", "#9b6a3c", "#5d74e0"];
const WORDS = ["CPUs", "updates"]; // units that the title says already: the axis has no room for them
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// When the task that a curve is of did not run, between its states.
function holes(run, curve) {
  const spans = run.tasks.find((task) => task.name === curve.name.split(",")[0])?.spans || [];
  return spans.slice(1).map((span, at) => [spans[at].end, span.begin]).filter(([begin, end]) => end - begin > 0.2);
}

function charts(runs) {
  const byId = new Map(), clusters = new Set(runs.map((run) => run.cluster)).size > 1;
  const named = (run, curve) => (runs.length > 1 ? `${clusters ? `${run.cluster} ` : ""}${run.run} ${curve.name}` : curve.name);
  for (const run of runs) for (const chart of run.charts) {
    if (!byId.has(chart.id)) byId.set(chart.id, { ...chart, curves: [] });
    for (const curve of chart.curves) byId.get(chart.id).curves.push({ ...curve, holes: holes(run, curve), name: named(run, curve) });
  }
  return [...byId.values()];
}

function drawFaults(plot, times) { // what a drill has broken, as a line across the picture
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = css("--broken");
  ctx.setLineDash([4, 4]);
  for (const at of times) {
    const x = plot.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

// The points of all curves over one axis; nothing is drawn where a task did not run, or said nothing for long.
const EXPAND = [1, 2]; // uPlot: a pause reaches to the curve's next points, whatever other curves have between
const plotted = (chart) => uPlot.join(chart.curves.map(interrupted), chart.curves.map(() => EXPAND));
const DENSE = 30, PAUSE = 8; // a curve of so many points is told regularly; so many usual intervals are a pause

function interrupted({ x, y, holes: none = [] }) {
  const apart = x.slice(1).map((at, number) => at - x[number]).sort((a, b) => a - b);
  const longest = x.length < DENSE ? Infinity : PAUSE * apart[apart.length >> 1];
  const pause = (from, to) => to - from > longest || none.some(([begin, end]) => from < end && to > begin);
  const xs = [], ys = [];
  x.forEach((at, number) => {
    if (none.some(([begin, end]) => begin < at && at < end)) return;
    if (number && pause(x[number - 1], at)) { xs.push((at + x[number - 1]) / 2); ys.push(null); }
    xs.push(at);
    ys.push(y[number]);
  });
  return [xs, ys];
}

function drawChart(chart, holder, faults) {
  const data = plotted(chart);
  const few = data[0].length < 60;
  const series = chart.curves.map((curve, at) => ({
    label: curve.name, stroke: COLOURS[at % COLOURS.length], width: 1.6, spanGaps: false,
    dash: at >= COLOURS.length ? [6, 3] : undefined, points: { show: few || curve.x.length < 30, size: 5 },
    value: (_, value) => figure(value, chart.unit),
  }));
  const axis = (more) => ({ stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, font: "12px system-ui, sans-serif", ...more });
  return new uPlot({
    width: holder.clientWidth || 300, height: 190, padding: [null, 30, null, null], legend: { mount: (_, legend) => mountLegend(holder, legend, chart.curves.length) }, cursor: { sync: { key: "time" }, drag: { x: true, y: false } },
    scales: { x: { time: false, range: (_, low, high) => [low ?? zoom.now[0], high ?? zoom.now[1]] }, y: { range: (_, low, high) => spread(low, high, chart.unit) } },
    series: [{ label: "time", value: (_, value) => (value === null ? "–" : seconds(value)) }, ...series],
    axes: [axis({ size: 34, space: APART, incrs: STEPS, values: (plot, found) => found.map((at) => moment(at, plot.scales.x.max)) }), axis({ size: 84, values: (_, found) => found.map((value) => figure(value, WORDS.includes(chart.unit) ? "" : chart.unit)) })],
    hooks: { setScale: [(plot, key) => { if (key === "x" && plot.status) zoom.set(plot.scales.x.min, plot.scales.x.max); }], draw: [(plot) => drawFaults(plot, faults)] },
  }, data, holder);
}

// Of many curves the legend is folded: it would be taller than the picture.
function mountLegend(holder, legend, count) {
  const many = count > 16;
  holder.querySelector(".legend")?.remove();
  holder.append(many ? element("details", { class: "legend" }, element("summary", { class: "soft" }, `legend of ${count} curves`), legend) : element("div", { class: "legend" }, legend));
}

function spread(low, high, unit) {
  if (low === null) return [0, 1];
  if (!low && !high) return [0, unit.startsWith("bytes") ? 4 : 1]; // there is no part of a byte
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  return [low >= 0 && low < (high - low) * 2 ? 0 : low - room, high + room];
}

function chartSection(runs) {
  const grid = element("div", { class: "charts" });
  const plots = [];
  const faults = runs.flatMap((run) => run.faults.map((fault) => fault.at));
  for (const chart of charts(runs)) {
    const holder = element("div", { class: "plot", role: "img", "aria-label": spoken(chart) });
    grid.append(element("div", { class: "chart", "data-chart": chart.id }, element("h3", {}, chart.title), holder, lastValues(chart)));
    plots.push({ chart, holder, plot: null });
  }
  const make = () => {
    for (const one of plots) {
      one.plot?.destroy();
      one.plot = drawChart(one.chart, one.holder, faults);
      one.plot.over.addEventListener("dblclick", () => zoom.reset());
      one.plot.setScale("x", { min: zoom.now[0], max: zoom.now[1] });
    }
  };
  const follow = (min, max) => { for (const { plot } of plots) if (plot && (plot.scales.x.min !== min || plot.scales.x.max !== max)) plot.setScale("x", { min, max }); };
  zoom.followers.push(follow);
  addEventListener("resize", () => { for (const { plot, holder } of plots) if (holder.isConnected) plot?.setSize({ width: holder.clientWidth || 300, height: 190 }); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (grid.isConnected) make(); });
  return { grid, make, follow, plots };
}

const last = (curve) => curve.y[curve.y.length - 1];
const spoken = (chart) => `${chart.title}: ${chart.curves.map((curve) => `${curve.name} ends at ${figure(last(curve), chart.unit)}`).join("; ")}`;

function lastValues(chart) {
  const rows = chart.curves.map((curve) => [curve.name, right(figure(curve.y[0], chart.unit)), right(figure(Math.min(...curve.y), chart.unit)), right(figure(Math.max(...curve.y), chart.unit)), right(figure(last(curve), chart.unit))]);
  return element("details", {}, element("summary", { class: "soft" }, "as a table"), table(["", "first", "least", "most", "last"], rows));
}
