"use strict";
// The page of a run that has ended, with its logs.
const { run } = embedded(), shown = element("div"), saved = logSection(run.cluster);
document.getElementById("page").append(pages(), shown, saved.made);
show([linkLogs(run)], shown);
saved.anew(run.run);
saved.wanted();
