"use strict";
// The cluster: who is who, and who sends whom how much.
const NODE = { width: 190, height: 46, gap: 22 }, TALL = 9, ROOM = 58;

function columns(run) {
  const of = (...roles) => run.tasks.filter((task) => roles.includes(task.role));
  const others = run.tasks.filter((task) => !["chief", "evaluator", "worker", "ps"].includes(task.role));
  return [[...of("chief", "evaluator"), ...others], of("worker"), of("ps")].filter((column) => column.length);
}

function network(run) {
  const places = new Map(), found = columns(run);
  const rows = Math.min(TALL, Math.max(...found.map((column) => column.length)));
  const height = ROOM + rows * (NODE.height + NODE.gap);
  let left = 10;
  found.forEach((column, number) => {
    const wide = Math.ceil(column.length / TALL), used = Math.min(column.length, TALL);
    const top = ROOM + ((rows - used) * (NODE.height + NODE.gap)) / 2;
    column.forEach((task, at) => {
      const along = Math.floor(at / TALL);
      places.set(task.name, { x: left + along * (NODE.width + 30), y: top + (at % TALL) * (NODE.height + NODE.gap), number });
    });
    left += wide * (NODE.width + 30) + 130;
  });
  const width = left - 110;
  const largest = Math.max(1, ...run.traffic.map((edge) => edge.bytes));
  const edges = run.traffic.filter((edge) => places.has(edge.sender) && places.has(edge.receiver)).map((edge, at) => drawEdge(edge, places, largest, at < (run.tasks.length > 4 ? 4 : 12)));
  const nodes = run.tasks.map((task) => drawNode(task, places.get(task.name), task.name === run.verdict.blame));
  return element("div", { class: "scroll" }, drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `The cluster ${run.cluster}: ${run.tasks.length} tasks on ${run.subnet}`, class: "network" },
    ...edges.map(([line]) => line), ...nodes, ...edges.map(([, text]) => text).filter(Boolean)));
}

function drawNode(task, { x, y }, blamed) {
  const gpus = task.gpus.length ? `GPU ${task.gpus.join(", ")}` : "no GPU";
  const words = `${task.name} (${task.role}${task.leads ? ", leads" : ""})\n${task.ip}\n${gpus}\nexit code ${task.exit_code ?? "–"}, restarts ${task.restarts ?? 0}`;
  return explained(drawn("g", { class: `node${blamed ? " blamed" : ""}`, tabindex: 0, role: "img", "aria-label": words },
    drawn("rect", { x, y, width: NODE.width, height: NODE.height, rx: 6 }),
    drawn("text", { x: x + 10, y: y + 19, "font-weight": 600 }, task.name + (task.leads ? " ★" : "")),
    drawn("text", { x: x + 10, y: y + 36, class: "soft" }, `${task.ip} · ${gpus}`)), words);
}

function drawEdge(edge, places, largest, named) {
  const from = places.get(edge.sender), to = places.get(edge.receiver);
  const forward = to.x > from.x, same = from.x === to.x, lifted = Math.abs(from.number - to.number) > 1 ? -70 : 0;
  const x1 = from.x + (forward || same ? NODE.width : 0), x2 = to.x + (forward ? 0 : NODE.width);
  const shift = forward ? 15 : 31;
  const [y1, y2] = [from.y + shift, to.y + shift];
  const bend = same ? 46 : (x2 - x1) / 2;
  const line = drawn("path", { class: "edge", tabindex: 0, role: "img", d: `M${x1} ${y1}C${x1 + bend} ${y1 + lifted} ${same ? x2 + bend : x2 - bend} ${y2 + lifted} ${x2} ${y2}`, "stroke-width": 1 + 6 * Math.sqrt(edge.bytes / largest), "data-edge": `${edge.sender} ${edge.receiver}` });
  const words = `${edge.sender} → ${edge.receiver}\n${bytes(edge.bytes)}, ${bytes(edge.bps)}/s`;
  line.setAttribute("aria-label", words);
  const share = forward ? 0.35 : 0.65, above = forward ? -7 : 15;
  const label = named && edge.bytes > largest / 100 ? drawn("text", { x: x1 + (x2 - x1) * share, y: y1 + (y2 - y1) * share + lifted * 0.6 + above, class: "soft", "text-anchor": "middle", "aria-hidden": "true" }, `${bytes(edge.bps)}/s`) : null;
  return [explained(line, words), label];
}

function trafficTable(run) {
  const rows = run.traffic.map((edge) => [edge.sender, edge.receiver, right(bytes(edge.bytes)), right(`${bytes(edge.bps)}/s`)]);
  if (!rows.length) return element("p", { class: "soft" }, "Who sent whom how much was not recorded.");
  return element("details", {}, element("summary", { class: "soft" }, "who sent whom how much"), table(["from", "to", "sent", "while anything was sent"], rows));
}
