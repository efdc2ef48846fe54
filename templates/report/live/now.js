"use strict";
// What each task does now; with buttons where they are allowed. Cells change in place.
const COLUMNS = [
  ["state", (now) => now.state], ["step", (now) => figure(now.step)], ["steps/s", (now) => figure(now.steps_per_s)], ["share", (now) => figure(now.share, "share")], ["loss", (now) => figure(now.loss)],
  ["CPUs", (now) => now.cpus?.toFixed(2) ?? "–"], ["memory", (now) => figure(now.memory, "bytes")], ["received", (now) => figure(now.rx_bps, "bytes/s")],
  ["sent", (now) => figure(now.tx_bps, "bytes/s")], ["GPU", (now) => figure(now.gpu_busy, "share")], ["restarts", (now) => figure(now.restarts)], ["exit", (now) => figure(now.exit_code)]];
const ALIVE = ["running", "ready", "training", "scoring", "waiting"];
const VERBS = { stop: (state) => ALIVE.includes(state), kill: (state) => ALIVE.includes(state), freeze: (state) => ALIVE.includes(state), thaw: (state) => state === "paused", restart: () => true };
const said = element("span", { class: "soft", id: "said", role: "status" });

// What was done is soon no longer so: a frozen task is started again.
const SAID_MS = 10000;
let saidUntil = 0;

// What ends work is asked once, as by the verb in a terminal.
const ASKED = { stop: (whom) => `Stop ${whom}?`, kill: (whom) => `Kill ${whom}, as if it had crashed?` };

async function control(path, what, whom) {
  if (ASKED[what] && !confirm(ASKED[what](whom))) return;
  clearTimeout(saidUntil);
  said.textContent = "…";
  try {
    const response = await fetch(`/control/${path}`, { method: "POST", headers: bearer });
    said.textContent = (await response.text()).trim().replace(/^\d+: /, "").replaceAll("\n", " → ");
  } catch { said.textContent = "the connection is lost"; }
  saidUntil = setTimeout(() => { said.textContent = ""; }, SAID_MS);
}

const button = (cluster, what, path, whom = `all tasks of ${cluster}`) => element("button", { type: "button", "data-verb": what, onclick: () => control(`${encodeURIComponent(cluster)}/${path}`, what, whom) }, what);

function nowSection(cluster, tasks, controls) {
  const columns = COLUMNS.filter(([heading]) => heading !== "GPU" || tasks.some((task) => task.gpus.length));
  const rows = new Map(), states = new Map();
  for (const { name, leads } of tasks) {
    const cells = columns.map(([heading]) => element("td", { class: heading === "state" ? null : "figure" }));
    const buttons = controls ? Object.keys(VERBS).map((verb) => button(cluster, verb, `${encodeURIComponent(name)}/${verb}`, name)) : [];
    for (const one of buttons) one.setAttribute("aria-label", `${one.dataset.verb} ${name}`);
    const row = element("tr", { "data-now": name }, element("th", { scope: "row" }, name + (leads ? " ★" : "")), ...cells, controls ? element("td", {}, ...buttons) : null);
    rows.set(name, { row, cells, buttons });
  }
  const update = (now) => {
    for (const [name, figures] of Object.entries(now)) {
      const found = rows.get(name);
      if (!found) continue;
      states.set(name, figures.state);
      columns.forEach(([heading, of], at) => {
        const text = heading === "state" && figures.straggler ? `${of(figures)}, lags` : of(figures);
        if (found.cells[at].textContent === text) return;
        found.cells[at].replaceChildren(...(heading === "state" ? [element("i", { class: `dot ${stateClass(figures.state)}` }), text] : [text]));
      });
      for (const one of found.buttons) one.disabled = !VERBS[one.dataset.verb](figures.state);
    }
  };
  const head = element("tr", {}, ...["task", ...columns.map(([heading]) => heading), ...(controls ? [""] : [])].map((text) => element("th", { scope: "col" }, text)));
  const all = controls ? element("div", { class: "bar" }, button(cluster, "stop", "stop"), button(cluster, "start", "start"), element("span", { class: "soft" }, "all tasks"), said) : null;
  const made = section("now", "Now", all, element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...[...rows.values()].map(({ row }) => row)))));
  const runs = () => !states.size || [...states.values()].some((state) => state !== "ended");
  return { made, update, runs };
}
