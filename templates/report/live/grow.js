"use strict";
// Adds what is new of a run to its facts, and to the pictures of them.
const order = (run) => { const places = new Map(run.tasks.map((task, at) => [task.name, at])); return (curve) => places.get(curve.name.split(",")[0]) ?? 1e9; };

function addPoints(run, figures, points) {
  let other = false;
  for (const { id, name, at, x, y } of points) {
    let chart = run.charts.find((one) => one.id === id);
    if (!chart) {
      const heading = figures.findIndex((one) => one.id === id);
      chart = { ...figures[heading], curves: [] };
      const next = run.charts.findIndex((one) => figures.findIndex((figure) => figure.id === one.id) > heading);
      run.charts.splice(next < 0 ? run.charts.length : next, 0, chart);
    }
    let curve = chart.curves.find((one) => one.name === name);
    if (!curve) {
      curve = { name, x: [], y: [] };
      const place = order(run), next = chart.curves.findIndex((one) => place(one) > place(curve));
      chart.curves.splice(next < 0 ? chart.curves.length : next, 0, curve);
      other = true;
    }
    curve.x.splice(at, Infinity, ...x);
    curve.y.splice(at, Infinity, ...y);
  }
  return other;
}

// Whether curves came that the pictures do not have yet.
function addNews(state, news) {
  const { run } = state;
  if (news.run) Object.assign(run, linkLogs(news.run));
  else for (const task of run.tasks) for (const span of [...task.spans, ...task.over]) if (span.open) span.end = news.seconds;
  if (news.traffic) run.traffic = news.traffic;
  run.seconds = news.seconds;
  for (const [name, figures] of Object.entries(news.now || {})) state.now[name] = figures;
  return addPoints(run, state.figures, news.points || []);
}

// The pictures go on to the right, if their right end is what is shown.
function widen(end) {
  const [from, to] = zoom.now, follows = to === zoom.whole[1], all = follows && from === zoom.whole[0];
  const longer = end - zoom.whole[1];
  zoom.whole = [0, Math.max(0.001, end)];
  zoom.now = all ? [...zoom.whole] : follows ? [from + longer, end] : zoom.now;
}
