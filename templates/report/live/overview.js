"use strict";
// All clusters that are up, and past runs.
function clusters(found, trouble) {
  if (trouble) return null;
  if (!found.length) return element("p", { id: "none" }, "No cluster is up: `cluster-kit up quickstart` runs one, and it appears here.");
  const rows = found.map((one) => [
    element("a", { href: linked(`/cluster/${encodeURIComponent(one.name)}`) }, one.name), right(String(one.tasks)),
    Object.entries(one.states).map(([state, count]) => `${count} ${state}`).join(", ")]);
  return table(["cluster", "tasks", "containers"], rows);
}

// A cluster that was stopped is up, and does not run.
const goes = (states) => (Object.keys(states).some((state) => !["exited", "dead"].includes(state)) ? "running" : "not running");

function runs(found, up) {
  const first = new Set();
  if (!found.length) return element("p", { class: "soft" }, "No run in this directory yet.");
  const goesOn = (one) => one.success === null && up.has(one.cluster) && !first.has(one.cluster);
  const word = (one) => (one.success === null ? one.verdict || "no verdict" : element("span", { class: `verdict ${one.success ? "good" : one.stopped ? "" : "bad"}` }, one.verdict));
  const rows = found.map((one) => {
    const now = goesOn(one), path = now ? `/cluster/${encodeURIComponent(one.cluster)}` : `/run/${encodeURIComponent(one.cluster)}/${encodeURIComponent(one.run)}`;
    first.add(one.cluster);
    return [element("a", { href: linked(path) }, `${one.cluster} ${one.run}`), one.began, one.metric, now ? up.get(one.cluster) : word(one), right(one.seconds === null ? "–" : seconds(one.seconds))];
  });
  return table(["run", "began", "metric", "verdict", "took"], rows);
}

function showOverview(facts) {
  overview.replaceChildren(
    facts.trouble ? element("p", { class: "note", id: "trouble" }, `Which clusters are up is not known: ${facts.trouble}`) : "",
    section("up", "Clusters that are up", clusters(facts.clusters, facts.trouble)), section("past", "Runs", runs(facts.runs, new Map(facts.clusters.map((one) => [one.name, goes(one.states)])))));
}

const overview = element("div");
document.getElementById("page").append(element("h1", {}, "cluster-kit "), listen("/overview.events", { overview: showOverview }), overview);
showOverview(embedded());
