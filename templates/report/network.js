"use strict";
// The cluster: who is who, and who sends whom how much; of many tasks each role as one.
// Where it has no room beside each other, roles stand one below the other.
const NARROW = matchMedia("(max-width: 700px)");
const MOST_SINGLE = 12, MOST_IN_ROWS = 6, ACROSS = 2;
const NODE = { width: 190, height: 46, gap: 22 }, TALL = 9, ROOM = 58;
const IN_ROWS = { width: 170, gap: 16, between: 84, room: 46 };

function columns(run) {
  const of = (...roles) => run.tasks.filter((task) => roles.includes(task.role));
  const others = run.tasks.filter((task) => !["chief", "evaluator", "worker", "ps"].includes(task.role));
  return [[...of("chief", "evaluator"), ...others], of("worker"), of("ps")].filter((column) => column.length);
}

// Of a run with many tasks: one with a task for each role, and the traffic between those.
function byRole(run) {
  const roles = [...new Set(run.tasks.map((task) => task.role))];
  const shown = roles.map((role) => {
    const own = run.tasks.filter((task) => task.role === role), [first, last] = [own[0], own[own.length - 1]];
    return own.length === 1 ? first : { ...first, name: `${own.length} ${role}${role === "ps" ? "" : "s"}`, role, count: own.length, leads: own.some((task) => task.leads), of: own, span: `${first.name} … ${last.name}` };
  });
  const nameOf = new Map(shown.flatMap((task) => (task.of || [task]).map((one) => [one.name, task.name])));
  const sums = new Map();
  for (const edge of run.traffic) {
    const [sender, receiver] = [nameOf.get(edge.sender), nameOf.get(edge.receiver)];
    const key = JSON.stringify([sender, receiver]), sum = sums.get(key) || { sender, receiver, bytes: 0, bps: 0 };
    sums.set(key, { ...sum, bytes: sum.bytes + edge.bytes, bps: sum.bps + edge.bps });
  }
  return { ...run, tasks: shown, traffic: [...sums.values()].sort((a, b) => b.bytes - a.bytes) };
}

// Each role as a column.
function inColumns(found) {
  const places = new Map();
  const rows = Math.min(TALL, Math.max(...found.map((column) => column.length)));
  let left = 10;
  found.forEach((column, number) => {
    const wide = Math.ceil(column.length / TALL), used = Math.min(column.length, TALL);
    const top = ROOM + ((rows - used) * (NODE.height + NODE.gap)) / 2;
    column.forEach((task, at) => {
      const along = Math.floor(at / TALL);
      places.set(task.name, { x: left + along * (NODE.width + 30), y: top + (at % TALL) * (NODE.height + NODE.gap), width: NODE.width, number });
    });
    left += wide * (NODE.width + 30) + 130;
  });
  return { places, width: left - 110, height: ROOM + rows * (NODE.height + NODE.gap) };
}

// Each role as a row, or as several if it has many tasks.
function inRows(found) {
  const places = new Map(), width = IN_ROWS.room + ACROSS * (IN_ROWS.width + IN_ROWS.gap);
  let top = 20;
  found.forEach((row, number) => {
    const used = Math.min(row.length, ACROSS), left = IN_ROWS.room + ((ACROSS - used) * (IN_ROWS.width + IN_ROWS.gap)) / 2;
    row.forEach((task, at) => places.set(task.name, { x: left + (at % ACROSS) * (IN_ROWS.width + IN_ROWS.gap), y: top + Math.floor(at / ACROSS) * (NODE.height + NODE.gap), width: IN_ROWS.width, number, inRows: true }));
    top += Math.ceil(row.length / ACROSS) * (NODE.height + NODE.gap) - NODE.gap + IN_ROWS.between;
  });
  return { places, width, height: top - IN_ROWS.between + 20 };
}

function network(whole) {
  const box = element("div", { class: "scroll picture" });
  box.redraw = () => box.replaceChildren(picture(whole));
  box.redraw();
  return box;
}

NARROW.addEventListener("change", () => document.querySelectorAll(".picture").forEach((box) => box.redraw()));

function picture(whole) {
  const run = whole.tasks.length > (NARROW.matches ? MOST_IN_ROWS : MOST_SINGLE) ? byRole(whole) : whole;
  const { places, width, height } = (NARROW.matches ? inRows : inColumns)(columns(run));
  const taken = [{ left: -Infinity, right: 0 }, { left: width, right: Infinity }].map((side) => ({ ...side, top: -Infinity, bottom: Infinity }));
  const largest = Math.max(1, ...run.traffic.map((edge) => edge.bytes));
  const edges = run.traffic.filter((edge) => places.has(edge.sender) && places.has(edge.receiver)).map((edge, at) => drawEdge(edge, places, largest, at < 12 ? taken : null));
  const above = Math.ceil(Math.max(0, ...taken.map((box) => -box.top).filter(Number.isFinite)));
  const nodes = run.tasks.map((task) => drawNode(task, places.get(task.name), (task.of || [task]).some((one) => one.name === run.verdict.blame)));
  return drawn("svg", { width, height: height + above, style: `max-width: 100%; min-width: ${Math.round(width * 0.7)}px; height: auto`, viewBox: `0 ${-above} ${width} ${height + above}`, role: "group", "aria-label": `The cluster ${run.cluster}: ${counted(whole.tasks.length, "task")} on ${run.subnet}`, class: "network" },
    ...edges.map(([line]) => line), ...nodes, ...edges.map(([, text]) => text).filter(Boolean));
}

function drawNode(task, { x, y, width }, blamed) {
  const gpus = task.gpus.length ? `GPU ${task.gpus.join(", ")}` : "no GPU";
  const fits = gpus.length <= 9 ? gpus : task.gpus.length === 1 ? "1 GPU" : `${task.gpus.length} GPUs`;
  const words = task.of ? `${task.name}${task.leads ? ", one leads" : ""}\n${task.of.map((one) => `${one.name} ${one.ip}`).slice(0, 20).join("\n")}${task.count > 20 ? "\n…" : ""}`
    : `${task.name} (${task.role}${task.leads ? ", leads" : ""})\n${task.ip}\n${gpus}\nexit code ${task.exit_code ?? "–"}, restarts ${task.restarts ?? "–"}`;
  return explained(drawn("g", { class: `node${blamed ? " blamed" : ""}`, tabindex: 0, role: "img", "aria-label": words },
    drawn("rect", { x, y, width, height: NODE.height, rx: 6 }),
    drawn("text", { x: x + 10, y: y + 19, "font-weight": 600 }, task.name + (task.leads ? " ★" : "")),
    drawn("text", { x: x + 10, y: y + 36, class: "soft" }, task.span || `${task.ip} · ${fits}`)), words);
}

// A line from one task to another as four points of a curve, and whether it leads away from the first role.
function curveOf(edge, places) {
  const from = places.get(edge.sender), to = places.get(edge.receiver), passes = Math.abs(from.number - to.number) > 1;
  if (from.inRows && from.y !== to.y) {
    const forward = to.y > from.y, share = forward ? 1 / 3 : 2 / 3;
    const [x1, x2] = [from.x + from.width * share, to.x + to.width * share];
    const [y1, y2] = [from.y + (forward ? NODE.height : 0), to.y + (forward ? 0 : NODE.height)];
    const bend = (y2 - y1) / 2, aside = passes ? Math.min(0, (between(from, to, places, "x") - 18 - (x1 + x2) / 2) / 0.75) : 0;
    return [[[x1, y1], [x1 + aside, y1 + bend], [x2 + aside, y2 - bend], [x2, y2]], forward];
  }
  const forward = to.x > from.x, same = from.x === to.x;
  const lifted = passes ? Math.min(-70, (between(from, to, places, "y") - 20 - NODE.height / 2 - (from.y + to.y) / 2) / 0.66) : 0;
  const x1 = from.x + (forward || same ? from.width : 0), x2 = to.x + (forward ? 0 : to.width);
  const shift = forward ? 15 : 31;
  const self = edge.sender === edge.receiver;
  const [y1, y2] = self ? [from.y + 8, to.y + NODE.height - 8] : [from.y + shift, to.y + shift];
  const bend = same ? (from.inRows ? 26 : 46) : (x2 - x1) / 2;
  return [[[x1, y1], [x1 + bend, y1 + lifted], [same ? x2 + bend : x2 - bend, y2 + lifted], [x2, y2]], forward];
}

function drawEdge(edge, places, largest, taken) {
  const [curve, forward] = curveOf(edge, places);
  const line = drawn("path", { class: "edge", tabindex: 0, role: "img", d: `M${curve[0].join(" ")}C${curve.slice(1).flat().join(" ")}`, "stroke-width": 1 + 6 * Math.sqrt(edge.bytes / largest), "data-edge": `${edge.sender} ${edge.receiver}` });
  const words = `${edge.sender} → ${edge.receiver}\n${bytes(edge.bytes)}, ${bytes(edge.bps)}/s`;
  line.setAttribute("aria-label", words);
  const said = `${bytes(edge.bps)}/s`;
  const at = taken && edge.bytes > largest / 100 ? roomFor(said.length * 6.5, curve, forward ? -7 : 15, places, taken) : null;
  const label = at ? drawn("text", { x: at[0], y: at[1], class: "soft label", "text-anchor": "middle", "aria-hidden": "true" }, said) : null;
  return [explained(line, words), label];
}

// Where the tasks of the roles between two others begin, from the left (x) or from above (y).
function between(from, to, places, axis) {
  const [first, last] = [Math.min(from.number, to.number), Math.max(from.number, to.number)];
  return Math.min(...[...places.values()].filter((at) => at.number > first && at.number < last).map((at) => at[axis]));
}

// Where a label of this width lies on no other one and on no node, along a curve; null if nowhere.
function roomFor(width, curve, above, places, taken) {
  for (const share of [0.5, 0.35, 0.65, 0.22, 0.78]) {
    const [x, y] = [0, 1].map((axis) => [1, 3, 3, 1].reduce((sum, times, n) => sum + times * share ** n * (1 - share) ** (3 - n) * curve[n][axis], 0));
    const box = { left: x - width / 2 - 2, right: x + width / 2 + 2, top: y + above - 13, bottom: y + above + 6 };
    const hits = (other) => box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom;
    const nodes = [...places.values()].map((at) => ({ left: at.x, right: at.x + at.width, top: at.y, bottom: at.y + NODE.height }));
    if (![...taken, ...nodes].some(hits)) { taken.push(box); return [x, y + above]; }
  }
  return null;
}

function trafficTable(run) {
  const rows = run.traffic.map((edge) => [edge.sender, edge.receiver, right(bytes(edge.bytes)), right(`${bytes(edge.bps)}/s`)]);
  if (!rows.length) return element("p", { class: "soft" }, "It is not known who sent whom how much.");
  return element("details", {}, element("summary", { class: "soft" }, "who sent whom how much"), table(["from", "to", "sent", "while anything was sent"], rows));
}
