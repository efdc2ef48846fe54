"""Draws the comparison with matplotlib, which is optional and used only here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cluster_kit.compare.measure import SCENARIOS, VARIANTS, Measured, Result

COLORS = {"even": "#2f7d6d", "straggler": "#c2782d", "system-a": "#3b6ea8"}
LINES = ("#2f7d6d", "#7fb8a4", "#3b6ea8", "#9dbcdd", "#c2452d", "#8a6bb1")
DARK, PALE = "#22303c", "#8794a0"
THICK = 0.26


def draw(results: Sequence[Result], accuracy: float, file: Path) -> bool:
    """Write the figure to `file`; False if matplotlib is not installed or there are no figures."""
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    if not any(result.measured for result in results):
        return False
    rcParams.update({"font.family": "DejaVu Sans", "font.size": 10, "text.color": DARK})
    figure = Figure(figsize=(14, 9.5), layout="constrained")
    axes = figure.subplots(2, 2)
    bars = (
        (axes[0][0], "images per second (logarithmic)", "{:,.0f}", lambda m: m.images_per_s),
        (axes[0][1], f"seconds to {accuracy:.0%} validation accuracy", "{:.1f}",
         lambda m: m.seconds_to_accuracy),
        (axes[1][0], "MB in and out per update (sync: twice the images)", "{:.2f}",
         _megabytes),
    )  # fmt: skip
    for panel, title, shown, value in bars:
        _bars(panel, title, shown, results, value)
    _curves(axes[1][1], results, accuracy)
    figure.suptitle("The same model and data, every way of training, equal CPU budgets\n",
                    x=0.01, ha="left", fontsize=15, fontweight="bold")  # fmt: skip
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.005, 0.972), ncols=3,
                  frameon=False, fontsize=11, handlelength=1.4)  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=130, facecolor="white")
    return True


def _megabytes(measured: Measured) -> float | None:
    return sum(measured.bytes_per_update.values()) / 1e6 if measured.bytes_per_update else None


def _bars(
    panel: Any,
    title: str,
    shown: str,
    results: Sequence[Result],
    value: Callable[[Measured], float | None],
) -> None:
    """Draw a group of bars for each way, one per scenario, or the reason if there is no figure."""
    ways = [way for way in VARIANTS if any(r.run.variant == way for r in results)]
    scenarios = [s for s in SCENARIOS if any(r.run.scenario == s for r in results)]
    results_by_cell = {(r.run.variant.key, r.run.scenario.key): r for r in results}
    figures = [size for r in results if r.measured and (size := value(r.measured))]
    longest = max(figures, default=0.0) or 1.0
    for row, way in enumerate(reversed(ways)):
        for place, scenario in enumerate(scenarios):
            at = row + (len(scenarios) / 2 - 0.5 - place) * THICK
            result = results_by_cell.get((way.key, scenario.key))
            if result is None:
                continue
            size = value(result.measured) if result.measured else None
            panel.barh(at, size or 0.0, height=THICK * 0.9, color=COLORS[scenario.key],
                       label=scenario.title if row == 0 else None)  # fmt: skip
            word = shown.format(size) if size is not None else _why(result)
            panel.annotate(word, (size or 0.0, at), xytext=(3, 0), textcoords="offset points",
                           xycoords=("data" if size else "axes fraction", "data"), va="center",
                           fontsize=8.5, color=DARK if size is not None else PALE)  # fmt: skip
    panel.set_yticks(range(len(ways)), [way.title for way in reversed(ways)])
    if "logarithmic" in title:
        panel.set_xscale("log")
        panel.set_xlim(min(figures, default=1.0) / 2 or 0.5, longest * 2)
    else:
        panel.set_xlim(0, longest * 1.14)
    panel.set_title(title, loc="left", fontweight="bold", fontsize=11)
    _plain(panel, "x")


def _why(result: Result) -> str:
    """The reason why a result has no figure, in one or two words."""
    if result.measured:
        return "not reached" if result.measured.curve else "not measured"
    return "failed" if result.failed else "left out"


def _curves(panel: Any, results: Sequence[Result], accuracy: float) -> None:
    """Draw accuracy over time in the first scenario that was run."""
    scenario = next(s for s in SCENARIOS if any(r.run.scenario == s for r in results))
    for way, color in zip(VARIANTS, LINES, strict=True):
        for result in results:
            if result.run.variant != way or result.run.scenario != scenario or not result.measured:
                continue
            if result.measured.curve:
                seconds, scores = zip(*result.measured.curve, strict=True)
                panel.plot(seconds, scores, color=color, marker="o", markersize=4, label=way.title)
    panel.axhline(accuracy, color=PALE, linewidth=1, linestyle=(0, (4, 3)))
    panel.set_title(f"validation accuracy over seconds: {scenario.title}", loc="left",
                    fontweight="bold", fontsize=11)  # fmt: skip
    panel.set_xlabel("seconds since the first step", color=DARK)
    panel.legend(frameon=False, fontsize=9, loc="lower right")
    _plain(panel, "both")


def _plain(panel: Any, grid: str) -> None:
    panel.tick_params(length=0, colors=DARK)
    panel.grid(axis=grid, color="#e6eaed")
    panel.set_axisbelow(True)
    for side in ("top", "right", "bottom", "left"):
        panel.spines[side].set_visible(False)
