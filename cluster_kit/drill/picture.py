"""Draws a drill with matplotlib, which is optional: steps over time, and a lane for each task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster_kit.drill.result import Lanes

RUNS, SILENT, STEPS = "#7fb8a4", "#c2782d", "#3b6ea8"
FAULT, DARK, PALE, GRID = "#c2452d", "#22303c", "#8794a0", "#e6eaed"
THICK = 0.42


def draw(lanes: Lanes, title: str, file: Path) -> bool:
    """Write the figure to `file`; False if matplotlib is not installed."""
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    rcParams.update({"font.family": "DejaVu Sans", "font.size": 10, "text.color": DARK})
    figure = Figure(figsize=(12, 3.6 + 0.5 * len(lanes.lanes)), layout="constrained")
    heights = {"height_ratios": [3, max(2, 0.55 * len(lanes.lanes))]}
    above, below = figure.subplots(2, 1, sharex=True, gridspec_kw=heights)
    _steps(above, lanes)
    _tasks(below, lanes)
    for panel in (above, below):
        _plain(panel)
        panel.set_xlim(min([0.0, *(fault.injected_at or 0.0 for fault in lanes.faults)]), lanes.end)
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    figure.savefig(file, dpi=130, facecolor="white")
    return True


def _steps(panel: Any, lanes: Lanes) -> None:
    """Steps over time; each fault as a line with its number."""
    for attempt in lanes.trained:
        moments, numbers = zip(*attempt, strict=True)
        panel.plot(moments, numbers, color=STEPS, marker="o", markersize=3, linewidth=1.6)
    for fault in lanes.faults:
        panel.axvline(fault.injected_at, color=FAULT, linewidth=1, linestyle=(0, (4, 3)))
        panel.annotate(f"{fault.fault.number}", (fault.injected_at, 1.0), xytext=(3, -11),
                       xycoords=("data", "axes fraction"), textcoords="offset points",
                       color=FAULT, fontsize=9, fontweight="bold")  # fmt: skip
    panel.set_title("steps, as the leader reports them", loc="left", fontsize=11)


def _tasks(panel: Any, lanes: Lanes) -> None:
    """A lane for each task: where its container ran, was silent, and was broken."""
    rows = {lane.task: row for row, lane in enumerate(reversed(lanes.lanes))}
    for lane in lanes.lanes:
        for spans, color, thick in ((lane.ran, RUNS, THICK), (lane.silent, SILENT, THICK / 2)):
            bars = [(begin, end - begin) for begin, end in spans]
            panel.broken_barh(bars, (rows[lane.task] - thick / 2, thick), facecolors=color)
    for fault in lanes.faults:
        row, at = rows[fault.fault.task], fault.injected_at
        panel.plot([at], [row], marker="X", markersize=9, color=FAULT, linestyle="none",
                   markeredgecolor="white")  # fmt: skip
        label = f"{fault.fault.number} {fault.fault.kind}"
        panel.annotate(label, (at, row), xytext=(0, 9), textcoords="offset points", color=FAULT,
                       fontsize=9, ha="center")  # fmt: skip
        if fault.going_on_after is not None and at is not None:
            panel.annotate("", (at + fault.going_on_after, row), (at, row),
                           arrowprops={"arrowstyle": "-|>", "color": DARK})  # fmt: skip
    panel.set_yticks(list(rows.values()), list(rows))
    panel.set_ylim(-0.6, len(rows) - 0.2)
    panel.set_xlabel("seconds since every task answered", color=DARK)
    title = (
        "green: its container runs; orange: it is called silent; arrow: until training continues"
    )
    panel.set_title(title, loc="left", fontsize=10, color=PALE)


def _plain(panel: Any) -> None:
    panel.tick_params(length=0, colors=DARK)
    panel.grid(axis="x", color=GRID)
    panel.set_axisbelow(True)
    for side in ("top", "right", "bottom", "left"):
        panel.spines[side].set_visible(False)
