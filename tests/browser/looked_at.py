"""Checks that a report shows a lane for each task and a curve for each figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.browser.chromium import Opened, opened

MOST_SINGLE = 12
"""With more tasks than this, the picture of the cluster has one box per role."""


def check(browser: Any, report: Path, scheme: str = "light") -> dict[str, Any]:
    """Open report.html and compare it with report.json next to it; returns the facts of the
    latter."""
    facts: dict[str, Any] = json.loads(report.with_suffix(".json").read_text())
    with opened(browser, report, scheme) as one:
        check_page(one, facts)
    return facts


def check_page(one: Opened, facts: dict[str, Any]) -> None:
    page = one.page
    assert one.complaints == []
    assert one.asked == []
    lanes = page.locator(".lane")
    assert [lane.get_attribute("data-task") for lane in lanes.all()] == [
        task["name"] for task in facts["tasks"]
    ]
    for task in facts["tasks"]:
        lane = page.locator(f'.lane[data-task="{task["name"]}"]')
        states = [box.get_attribute("data-state") for box in lane.locator("rect.state").all()]
        assert states == [span["state"] for span in [*task["spans"], *task["over"]]]
        assert lane.locator(".mark").count() == len(task["marks"])
        assert task["name"] in (lane.get_attribute("aria-label") or "")
    shown = page.locator(".chart")
    assert [one.get_attribute("data-chart") for one in shown.all()] == [
        chart["id"] for chart in facts["charts"]
    ]
    for chart in facts["charts"]:
        plot = page.locator(f'.chart[data-chart="{chart["id"]}"]')
        names = [label.text_content().rstrip(":") for label in plot.locator(".u-label").all()]
        assert names == ["time", *(curve["name"] for curve in chart["curves"])]
        assert drawn(plot.locator("canvas").first), f"{chart['id']} is empty"
    nodes, edges = page.locator(".node").count(), page.locator(".edge").count()
    roles = {task["name"]: task["role"] for task in facts["tasks"]}
    if len(roles) <= MOST_SINGLE:
        assert (nodes, edges) == (len(roles), len(facts["traffic"]))
    else:
        sent = {(roles[one["sender"]], roles[one["receiver"]]) for one in facts["traffic"]}
        assert (nodes, edges) == (len(set(roles.values())), len(sent))


def drawn(canvas: Any) -> bool:
    """Returns whether a canvas has a pixel that is neither the background's nor the axes' grey."""
    return bool(
        canvas.evaluate(
            """canvas => {
              const {width, height} = canvas;
              const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
              for (let at = 0; at < data.length; at += 4) {
                const [r, g, b] = [data[at], data[at + 1], data[at + 2]];
                if (data[at + 3] > 99 && Math.max(r, g, b) - Math.min(r, g, b) > 60) return true;
              }
              return false;
            }"""
        )
    )
