"use strict";
// What the server tells this page, as long as it is looked at.
const token = new URLSearchParams(location.search).get("token") || "";
const linked = (path) => `${path}?token=${encodeURIComponent(token)}`;

// A browser opens six connections to one server: a hidden page gives its own back.
function listen(path, handlers) {
  const state = element("p", { class: "soft", id: "connection", role: "status" });
  let source = null, ended = false;
  const open = () => {
    source = new EventSource(linked(path));
    source.onopen = () => { state.textContent = ""; };
    source.onerror = () => { state.textContent = "the connection is lost; trying again …"; };
    for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
    source.addEventListener("end", () => {
      ended = true;
      source.close();
      state.textContent = "cluster-kit has ended: this is the last that it told";
    });
  };
  const close = () => { source?.close(); source = null; };
  document.addEventListener("visibilitychange", () => { if (ended) return; close(); if (!document.hidden) open(); });
  if (!document.hidden) open();
  return state;
}
