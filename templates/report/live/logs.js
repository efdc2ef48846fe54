"use strict";
// What tasks say: of one or of all, with search; new lines come as long as the log is looked at.
const EVERY_MS = 1000, MOST_SHOWN = 5000;

function marked(text, words) {
  const found = words ? text.toLowerCase().indexOf(words.toLowerCase()) : -1;
  if (found < 0) return [text];
  const end = found + words.length;
  return [text.slice(0, found), element("mark", {}, text.slice(found, end)), ...marked(text.slice(end), words)];
}

const clock = (time) => { const at = new Date(time); return Number.isNaN(at.getTime()) ? time.slice(11, 19) : at.toTimeString().slice(0, 8); };

function logSection(cluster) {
  const choice = element("select", { "aria-label": "Task" });
  const search = element("input", { type: "search", placeholder: "search", "aria-label": "Search in the log" });
  const told = element("span", { class: "soft", role: "status" });
  const log = element("pre", { class: "log", tabindex: 0, "aria-label": "Log" });
  const state = { run: "", next: "", asks: false, again: false, seen: false, wanted: "" };
  const line = ([time, task, text]) => element("div", {}, element("span", {}, `${clock(time)} ${choice.value ? "" : `${task.padEnd(12)} `}`), ...marked(text, search.value));

  function choices(tasks) {
    const known = [...choice.options].map((option) => option.value).slice(1);
    if (choice.options.length && known.join() === tasks.join()) return;
    const before = state.wanted || choice.value;
    choice.replaceChildren(element("option", { value: "" }, "all tasks"), ...tasks.map((task) => element("option", { value: task }, task)));
    choice.value = tasks.includes(before) ? before : "";
    state.wanted = "";
  }

  async function ask() {
    if (state.asks) { state.again = true; return; }
    state.asks = true;
    state.again = false;
    const asked = state.next;
    const query = new URLSearchParams({ token, run: state.run, task: state.wanted || choice.value, after: asked, q: search.value });
    try {
      const response = await fetch(`/log/${encodeURIComponent(cluster)}?${query}`);
      if (!response.ok) throw new Error(await response.text());
      const found = await response.json();
      if (state.next === asked && !state.again) take(found);
    } catch (error) {
      told.textContent = error instanceof TypeError ? "the connection is lost" : String(error.message);
    }
    state.asks = false;
    if (state.again) ask();
  }

  function take(found) {
    choices(found.tasks);
    if (found.next === "saved" && state.next !== "") log.replaceChildren(); // the cluster has ended: all of it comes again
    const bottom = log.scrollHeight - log.scrollTop - log.clientHeight < 30;
    log.append(...found.lines.map(line));
    while (log.childElementCount > MOST_SHOWN) log.firstElementChild.remove();
    if (bottom) log.scrollTop = log.scrollHeight;
    if (state.next === "" || found.lines.length) {
      const left = found.left_out ? `; left out: ${counted(found.left_out, "older line")}` : "";
      told.textContent = log.childElementCount ? `${counted(log.childElementCount, "line")}${left}` : search.value ? "no line has that" : "no line";
    }
    state.next = found.next;
  }

  function anew(run) {
    if (run !== undefined) state.run = run;
    state.next = "";
    log.replaceChildren();
    if (state.seen) ask();
  }

  function wanted() {
    if (!location.hash.startsWith("#log-")) return;
    state.wanted = decodeURIComponent(location.hash.slice(5));
    choice.value = state.wanted;
    if (choice.value === state.wanted) state.wanted = "";
    state.seen = true;
    made.scrollIntoView();
    anew();
  }

  let typed = 0;
  choice.addEventListener("change", () => anew());
  search.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(() => anew(), 250); });
  setInterval(() => { if (state.seen && !document.hidden && state.next !== "saved") ask(); }, EVERY_MS);
  const made = section("logs", "Logs", element("div", { class: "bar" }, choice, search, told), log);
  new IntersectionObserver(([entry]) => { state.seen = entry.isIntersecting; if (state.seen && state.next === "") ask(); }).observe(made);
  addEventListener("hashchange", wanted);
  return { made, anew, wanted };
}

// Links to files beside a report lead to the log on this page.
function linkLogs(run) {
  for (const task of run.tasks) task.log = `#log-${encodeURIComponent(task.name)}`;
  return run;
}
