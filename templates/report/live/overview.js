"use strict";
// All clusters that are up, and past runs.
function clusters(found) {
  if (!found.length) return element("p", { id: "none" }, "No cluster is up: `cluster-kit up quickstart` runs one, and it appears here.");
  const rows = found.map((one) => [
    element("a", { href: linked(`/cluster/${encodeURIComponent(one.name)}`) }, one.name), right(String(one.tasks)),
    Object.entries(one.states).map(([state, count]) => `${count} ${state}`).join(", ")]);
  return table(["cluster", "tasks", "containers"], rows);
}

function runs(found) {
  if (!found.length) return element("p", { class: "soft" }, "No run in this directory yet.");
  const rows = found.map((one) => [
    element("a", { href: linked(`/run/${encodeURIComponent(one.cluster)}/${encodeURIComponent(one.run)}`) }, `${one.cluster} ${one.run}`), one.began,
    one.success === undefined || one.success === null ? one.verdict || "no verdict" : element("span", { class: `verdict ${one.success ? "good" : "bad"}` }, one.verdict),
    right(one.seconds === null ? "–" : seconds(one.seconds))]);
  return table(["run", "began", "verdict", "took"], rows);
}

function showOverview(facts) {
  body.replaceChildren(
    facts.trouble ? element("p", { class: "note", id: "trouble" }, `Clusters that are up are not known: ${facts.trouble}`) : "",
    element("section", { "aria-labelledby": "up" }, element("h2", { id: "up" }, "Clusters that are up"), clusters(facts.clusters)),
    element("section", { "aria-labelledby": "past" }, element("h2", { id: "past" }, "Runs"), runs(facts.runs)));
}

const body = element("div");
document.getElementById("page").append(element("h1", {}, "cluster-kit"), listen("/overview.events", { overview: showOverview }), body);
showOverview(JSON.parse(document.getElementById("facts").textContent));
