"""Draws one picture: each ratio as a bar, with a mark for its goal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

from tests.bench.measured import Measured, Result
from tests.bench.report import figure

MET, MISSED, DARK, PALE = "#2f7d6d", "#c2452d", "#22303c", "#8794a0"


def draw(results: Sequence[Result], machine: dict[str, Any], file: Path) -> None:
    """Draw the ratios of the kit to the other way: medians with the range of their pairs."""
    shown = [result for result in results if isinstance(result, Measured) and result.other]
    others = [result for result in results if isinstance(result, Measured) and not result.other]
    if not shown:
        return
    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 11, "text.color": DARK})
    figure_, axes = plt.subplots(figsize=(11, 2.0 + 0.6 * len(shown)), layout="constrained")
    end = max(1.0, *(max(result.values) for result in shown))
    for row, result in enumerate(shown):
        _row(axes, len(shown) - 1 - row, result, end + 0.16)
    _axes(axes, shown, end + 0.62)
    figure_.suptitle(
        "cluster-kit against the plain way: same program, same engine, same run",
        x=0.01, ha="left", fontsize=14, fontweight="bold",
    )  # fmt: skip
    _legend(axes)
    figure_.supxlabel("\n".join(_notes(others, machine)), x=0.01, ha="left", fontsize=9, color=PALE)
    figure_.savefig(file, dpi=150, facecolor="white")
    plt.close(figure_)


def _row(axes: Any, at: int, result: Measured, column: float) -> None:
    color = PALE if result.bar is None else MET if result.met else MISSED
    axes.barh(at, result.value, height=0.5, color=color, zorder=2)
    low, high = min(result.values), max(result.values)
    axes.plot([low, high], [at, at], color=DARK, linewidth=1.4, zorder=3, solid_capstyle="butt")
    if result.bar:
        limit = result.bar.limit
        axes.plot([limit, limit], [at - 0.36, at + 0.36], color=DARK, linewidth=2.6, zorder=4)
    ratio = f"{result.value:.2f}" if result.value >= 0.1 else f"{result.value:.3f}"
    was, now = (figure(median(way), result.unit) for way in (result.other, result.kit))
    axes.text(column, at, ratio, va="center", ha="right", fontweight="bold", color=color)
    axes.text(column + 0.03, at, f"{was} → {now}", va="center", color=DARK)


def _axes(axes: Any, shown: Sequence[Measured], end: float) -> None:
    labels = [f"{result.title}\n{_goal(result)}" for result in reversed(shown)]
    axes.set_yticks(range(len(shown)), labels)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.set_xlim(0, end)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
    axes.axvline(1.0, color=PALE, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    axes.tick_params(length=0, colors=DARK)
    axes.grid(axis="x", color="#e6eaed", zorder=0)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)


def _goal(result: Measured) -> str:
    against = "" if result.other_way == "plain way" else f", of {result.other_way}"
    return f"goal {result.bar}{against}" if result.bar else f"no goal{against}"


def _legend(axes: Any) -> None:
    handles = [
        Line2D([], [], color=MET, linewidth=9, label="ratio, median"),
        Line2D([], [], color=DARK, linewidth=1.4, label="all pairs"),
        Line2D([], [], color=DARK, linewidth=0, marker="|", markersize=13, markeredgewidth=2.6,
               label="goal"),
        Line2D([], [], color=PALE, linewidth=1, linestyle=(0, (4, 3)), label="1 = no difference"),
    ]  # fmt: skip
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=4, frameon=False,
        fontsize=9.5, handlelength=1.6, columnspacing=1.6,
    )  # fmt: skip


def _notes(others: Sequence[Measured], machine: dict[str, Any]) -> list[str]:
    lines = [
        f"{result.title}: {figure(result.value, result.unit)} (goal {result.bar} {result.unit})"
        for result in others
    ]
    lines.append(
        f"{machine['cpus']} CPUs, {machine['memory_gib']:.0f} GiB, TensorFlow"
        f" {machine['tensorflow']}, Docker {machine['docker']}, Compose {machine['compose']}"
    )
    return lines
