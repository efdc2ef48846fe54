"use strict";
// Puts the page together from the facts of one run, or of several side by side.
const embedded = () => JSON.parse(document.getElementById("facts").textContent);

// What the command line calls the end of a run, and the colour of that.
function ending({ success, reason }) {
  if (success === null || success === undefined) return ["no verdict", ""];
  if (success) return ["success", "good"];
  if (["stopped", "interrupted"].includes(reason)) return ["stopped", ""];
  return [reason && reason !== "failed" ? `failed: ${reason}` : "failed", "bad"];
}

function header(run) {
  const { verdict } = run;
  const [word, colour] = ending(verdict);
  const blame = verdict.blame && !verdict.message?.startsWith(`${verdict.blame} `) ? `${verdict.blame}: ${verdict.message}` : verdict.message;
  return element("header", {},
    element("h1", {}, `${run.cluster} `, element("span", { class: `badge ${colour}` }, word)),
    element("p", { class: "soft" }, `run ${run.run}, ${new Date(run.began * 1000).toLocaleString()}, ${took(run)}, ${counted(run.tasks.length, "task")}`),
    verdict.decided ? element("p", {}, `Decided: ${verdict.decided}`) : null,
    blame ? element("pre", { class: "message" }, blame) : null,
    verdict.last_words ? element("div", {}, element("h3", {}, "Last words"), element("pre", {}, verdict.last_words)) : null,
    verdict.cure ? element("p", {}, `What to do: ${verdict.cure}`) : null,
    ...(verdict.notes || []).map((note) => element("p", { class: "soft note" }, note)));
}

function tasks(run) {
  const use = (task, key, unit) => right(figure(task.usage?.[key] ?? null, unit));
  const rows = run.tasks.map((task) => [
    task.name + (task.leads ? " ★" : ""), task.ip, task.gpus.join(", ") || "–", right(String(task.exit_code ?? "–")), right(String(task.restarts ?? "–")),
    use(task, "cpus_mean", ""), use(task, "cpus_peak", ""), use(task, "memory_peak", "bytes"), right(figure(task.rx_bytes, "bytes")), right(figure(task.tx_bytes, "bytes")),
    task.log ? element("a", { href: task.log }, "log") : "–"]);
  return table(["task", "address", "GPUs", "exit", "restarts", "CPUs, mean", "peak", "memory, peak", "received", "sent", ""], rows);
}

function compared(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.metrics)))].sort();
  const asked = new Set(runs.map((run) => run.command)).size > 1 ? [["command", ...runs.map((run) => element("code", {}, run.command))]] : [];
  const of = (run) => (run.verdict.success ? "success" : run.verdict.reason || "no verdict");
  return table(["", ...runs.map((run) => `${run.cluster} ${run.run}`)], [
    ...asked, ["verdict", ...runs.map(of)], ["time", ...runs.map((run) => right(took(run)))],
    ...names.map((name) => [name.replaceAll("_", " "), ...runs.map((run) => right(metric(run.metrics[name])))])]);
}

// JSON has no NaN: null is a figure that is not finite, undefined one that the run does not have.
function metric(value) {
  return value === null ? "nan or infinite" : figure(value);
}

function placement(run) {
  if (!run.placement?.length) return null;
  const rows = run.placement.map((one) => [one.name, one.on, right(bytes(one.bytes))]);
  return element("details", { open: rows.length < 15 }, element("summary", {}, "Variables and where they are"), table(["variable", "on", "size"], rows));
}

// What more workers would bring, as predicted from this run; null if that was not asked for.
function scaling(run) {
  const found = run.scaling;
  if (!found) return null;
  const short = (value) => (value === null ? "–" : value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(3));
  const rows = found.points.map((one) => [right(String(one.workers)), right(short(one.speed)), right(one.low === one.high ? "" : `${short(one.low)} … ${short(one.high)}`),
    right(one.efficiency === null ? "–" : `${Math.round(one.efficiency * 100)} %`)]);
  const limits = found.points.filter((one) => one.limit).map((one) => element("li", {}, `${counted(one.workers, "worker")}: ${one.limit}`));
  const unit = `${found.unit}/s`, same = run.tasks.some((task) => task.role === "ps") ? "ps and links" : "links";
  return element("div", {}, rows.length ? table(["workers", unit, "from … to", "efficiency"], rows) : null,
    limits.length ? element("div", {}, element("p", {}, "What limits"), element("ul", {}, ...limits)) : null,
    found.why ? element("p", { class: "soft" }, `No prediction${rows.length ? " beyond that" : ""}: ${found.why}`) : null,
    rows.length ? element("p", { class: "soft" }, `Predicted from this run, with the same ${same}; cluster-kit predict ${run.cluster}/${run.run} takes other ones.`) : null);
}

function howItWasRun(run) {
  const pairs = (found, shown) => table(["", ""], Object.entries(found).map(([name, value]) => [name.replaceAll("_", " "), right(shown(value))]));
  return element("div", {}, element("h3", {}, "Again"), element("pre", {}, run.command || `cluster-kit up ${run.source}`),
    Object.keys(run.metrics).length ? element("div", {}, element("h3", {}, "Metrics"), pairs(run.metrics, metric)) : null,
    Object.keys(run.timings_s).length ? element("div", {}, element("h3", {}, "Where the time went"), pairs(run.timings_s, (value) => figure(value, "s"))) : null,
    element("h3", {}, "Versions"), table(["", ""], [["cluster-kit", run.kit], ["image", run.image], ["style", run.style], ["data", run.data || "–"], ["subnet", run.subnet]]),
    run.manifest ? element("details", {}, element("summary", {}, `Manifest ${run.source}`), element("pre", {}, run.manifest)) : null);
}

function section(id, title, ...children) {
  return element("section", { id, "aria-labelledby": `${id}-title` }, element("h2", { id: `${id}-title` }, title), ...children);
}

function clusterSection(runs, named = () => null) {
  return section("cluster", "The cluster", ...runs.flatMap((run) => [named(run), network(run), trafficTable(run), tasks(run), placement(run)]));
}

function show(runs, page) {
  const named = (run) => (runs.length > 1 ? element("h3", {}, `${run.cluster} ${run.run}`) : null);
  zoom.followers = [];
  zoom.whole = [0, Math.max(0.001, ...runs.map((run) => run.seconds))];
  zoom.now = [...zoom.whole];
  const figures = chartSection(runs);
  page.replaceChildren(
    ...runs.map(header), ...(runs.length > 1 ? [section("compared", "Side by side", compared(runs))] : []),
    section("lanes", "What each task did", laneKey(runs), zoomBar(), ...runs.flatMap((run) => [named(run), lanes(run), faultTable(run)])),
    section("figures", "Figures over time", figures.grid),
    clusterSection(runs, named),
    ...(runs.some((run) => run.scaling) ? [section("scaling", "With more workers", ...runs.flatMap((run) => [named(run), scaling(run)]))] : []),
    ...(runs.some((run) => run.profiles?.length) ? [section("profiles", "Where a step's time goes", ...runs.flatMap((run) => [named(run), ...profiles(run)]))] : []),
    section("how", "How it was run", ...runs.flatMap((run) => [named(run), howItWasRun(run)])), tip);
  figures.make();
  zoom.followers.forEach((follow) => follow(...zoom.now));
  return figures;
}
