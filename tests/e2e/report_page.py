"""Checks the report of each system's run: its facts match the run, and a browser shows them."""

from __future__ import annotations

import json
from typing import Any

from tests.browser.chromium import started, why_none
from tests.browser.looked_at import check
from tests.e2e.evidence import latest
from tests.kit import Kit

LARGEST = 500_000


def reported(kit: Kit, *charts: str) -> dict[str, Any]:
    """Returns the facts of the newest run's report, which has at least these charts."""
    report = latest(kit).resolve() / "report.html"
    facts: dict[str, Any] = json.loads(report.with_suffix(".json").read_text())
    assert report.stat().st_size < LARGEST
    outcome = kit.outcome()
    assert facts["verdict"]["success"] is outcome["success"]
    assert [task["name"] for task in facts["tasks"]] == [one["name"] for one in outcome["tasks"]]
    assert all(task["spans"] and task["usage"]["memory_peak"] for task in facts["tasks"])
    leader = next(task for task in facts["tasks"] if task["leads"])
    assert "training" in {span["state"] for span in leader["spans"]}
    shown = {chart["id"] for chart in facts["charts"]}
    assert {"cpus", "memory", "rx_bps", "tx_bps", *charts} <= shown, shown
    assert facts["traffic"], "no task has sent data to another one"
    if not why_none():  # The browser tests themselves report why there is none.
        with started() as browser:
            check(browser, report)
    return facts
