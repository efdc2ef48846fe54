"use strict";
// The live page of a cluster: its newest run as it goes on, and the next one when that begins.
const { cluster, control: controls } = embedded();
const REDRAW_MS = 500, SLOW_MS = 5000;
const live = { run: null, now: {}, figures: [], pictures: null, table: null, other: false, due: 0, slow: 0 };
const body = element("div"), log = logSection(cluster);

function showRun(told) {
  if (told.none !== undefined) {
    live.run = null;
    body.replaceChildren(element("h1", {}, cluster), element("p", { id: "none" }, `${told.none}. What comes next appears here.`));
    if (Object.keys(told.states).length) body.append(table(["task", "container"], Object.entries(told.states)));
    return log.anew("");
  }
  const same = live.run && live.run.run === told.run.run, view = [zoom.now, zoom.whole];
  Object.assign(live, { run: linkLogs(told.run), now: told.now, figures: told.figures || [], stopped: told.stopped, other: false });
  live.pictures = show([live.run], body);
  if (same && !(view[0][0] === view[1][0] && view[0][1] === view[1][1])) zoom.set(...view[0]);
  live.table = Object.keys(told.now).length ? nowSection(cluster, live.run.tasks, controls) : null;
  if (live.table) { body.querySelector("header").after(live.table.made); live.table.update(live.now); running(); }
  if (!same || told.ended) log.anew(live.run.run);
}

const trouble = element("p", { class: "note", id: "trouble", hidden: true });
function showTrouble(words) {
  trouble.hidden = !words;
  trouble.textContent = `The engine does not answer, so that only what tasks write is known: ${words}`;
}

function showNews(news) {
  if (!live.run) return;
  live.other = addNews(live, news) || live.other;
  live.stopped = news.stopped ?? live.stopped;
  live.anew = live.anew || Boolean(news.run);
  live.sent = live.sent || Boolean(news.run || news.traffic);
  if (news.now) live.table?.update(news.now);
  live.pending = true;
  if (!live.due) live.due = setTimeout(redraw, REDRAW_MS);
}

// Not for each piece of news: what is drawn takes longer the more there is.
function redraw() {
  const began = performance.now(), { run } = live;
  live.due = 0;
  if (!run || !live.pending) return;
  widen(run.seconds);
  body.querySelector("header").replaceWith(header(run));
  running();
  if (live.anew) body.querySelector("#lanes .bar").replaceWith(laneKey([run]));
  if (live.other) redrawFigures(run);
  for (const { plot, chart } of live.pictures.plots) plot?.setData(plotted(chart), false);
  for (const { plot } of live.pictures.plots) plot?.setScale("x", { min: zoom.now[0], max: zoom.now[1] });
  for (const follow of zoom.followers) follow(...zoom.now);
  if (live.sent && began > live.slow) { redrawCluster(run); live.slow = began + SLOW_MS; live.sent = false; }
  live.anew = live.other = live.pending = false;
  const took = performance.now() - began;
  if (took > REDRAW_MS / 10) live.due = setTimeout(redraw, took * 10);
}

const running = () => { if (live.table) body.querySelector(".badge").textContent = live.table.runs() ? "running" : live.stopped ? "stopped" : "not running"; };

function redrawFigures(run) {
  zoom.followers = zoom.followers.filter((follow) => follow !== live.pictures.follow);
  const old = live.pictures;
  live.pictures = chartSection([run]);
  old.grid.replaceWith(live.pictures.grid);
  for (const { plot } of old.plots) plot?.destroy();
  live.pictures.make();
}

function redrawCluster(run) {
  const old = body.querySelector("#cluster"), fresh = clusterSection([run]);
  const open = [...old.querySelectorAll("details")].map((one) => one.open);
  fresh.querySelectorAll("details").forEach((one, at) => { one.open = open[at] ?? one.open; });
  old.replaceWith(fresh);
}

document.getElementById("page").append(pages(listen(`/cluster/${encodeURIComponent(cluster)}/events`, { run: showRun, news: showNews, trouble: showTrouble })), trouble, body, log.made);
log.wanted();
