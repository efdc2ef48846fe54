"use strict";
// What the server tells this page, as long as it is looked at.
const token = new URLSearchParams(location.search).get("token") || "";
const linked = (path) => `${path}?token=${encodeURIComponent(token)}`;
const bearer = { Authorization: `Bearer ${token}` };

// A browser opens six connections to one server: a hidden page gives its own back.
function listen(path, handlers) {
  const state = element("span", { class: "soft", id: "connection", role: "status" });
  let source = null, ended = false;
  const open = () => {
    source = new EventSource(linked(path));
    source.onopen = () => { state.textContent = "live"; };
    source.onerror = () => {
      state.textContent = "the connection is lost; trying again …";
      if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (!document.hidden && !ended) open(); }, 2000);
    };
    for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
    source.addEventListener("end", () => {
      ended = true;
      source.close();
      state.textContent = "cluster-kit has ended: this is the last that it told";
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (ended) return;
    source?.close();
    source = null;
    if (document.hidden) state.textContent = "paused while this page is hidden";
    else open();
  });
  if (!document.hidden) open();
  return state;
}

const pages = (...more) => element("nav", { "aria-label": "Pages" }, element("a", { href: linked("/") }, "all clusters and runs"), ...more);
