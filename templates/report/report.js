"use strict";
// The page of runs that have ended, or are looked at as they are at one moment.
show(embedded().runs, document.getElementById("page"));
