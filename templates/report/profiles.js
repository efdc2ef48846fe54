"use strict";
// Traces that were taken during the run: where the time of a step went, and how to open each.
const KINDS = ["compute", "waiting", "sending", "input", "dispatch", "idle"];

function profileTable(profile) {
  const share = (task, kind) => right(figure(task.shares[kind] ?? 0, "share"));
  const each = (task) => right(task.runs ? `${((1000 * task.seconds) / task.runs).toFixed(1)} ms` : "–");
  return table(["task", "runs", "each", ...KINDS, "waits for", "longest op"],
    profile.tasks.map((task) => [task.name, right(String(task.runs || "–")), each(task), ...KINDS.map((kind) => share(task, kind)), task.waits_for,
      task.longest_ops.length ? `${task.longest_ops[0].name.split("/").slice(-2).join("/")}, ${task.longest_ops[0].ms.toFixed(1)} ms` : "–"]));
}

// A page that `serve` shows has no files beside it: there the path is told.
function traceFile(path) {
  const served = document.querySelector('meta[http-equiv="Content-Security-Policy"]')?.content.includes("connect-src");
  return served ? element("code", {}, path) : element("a", { href: path, download: true }, path.split("/").pop());
}

function profiles(run) {
  return (run.profiles || []).map((profile) => {
    const { before, during } = profile.steps_per_s;
    const cost = before && during !== null ? `; ${figure(before)} steps/s before, ${figure(during)} while it was traced` : "";
    const missing = Object.entries(profile.missing).map(([task, why]) => `${task} is missing: ${why}`);
    return element("div", { class: "profile" },
      element("p", {}, traceFile(profile.file),
        ` (${bytes(profile.bytes)}): ${seconds(profile.seconds)} of ${profile.tasks.length} task${profile.tasks.length === 1 ? "" : "s"}, ${seconds(profile.at)} after the start${cost}. Open it at `,
        element("code", {}, "https://ui.perfetto.dev"), " (the file stays in your browser) or in ", element("code", {}, "chrome://tracing"), "."),
      ...missing.map((text) => element("p", { class: "soft note" }, text)), profileTable(profile));
  });
}
