"""Draws a prediction with matplotlib, which is optional and used only here."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from cluster_kit.predict.answer import Answer, Point
from cluster_kit.util.terminal import harmless

LONGEST_TITLE = 80
LINES = ("#2f7d6d", "#3b6ea8", "#c2782d", "#8a6bb1", "#c2452d", "#7fb8a4")
DARK, PALE = "#22303c", "#8794a0"


def draw(answer: Answer, file: Path) -> bool:
    """Write the figure to `file`; False if matplotlib is not installed.

    Raises:
        OSError: the file cannot be written.
        ValueError: matplotlib does not know the file's ending.
    """
    try:
        from matplotlib import rcParams
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        return False
    rcParams.update({"font.family": "DejaVu Sans", "font.size": 10, "text.color": DARK})
    figure = Figure(figsize=(8, 5), layout="constrained")
    panel: Any = figure.subplots()
    known = [point for point in answer.points if point.images_per_s is not None]
    groups = sorted({point.ps for point in known}, key=lambda ps: ps or 0)
    for number, ps in enumerate(groups):
        _line(panel, [p for p in known if p.ps == ps], ps, LINES[number % len(LINES)])
    measured = [point for point in answer.points if point.measured is not None]
    for calibrates, label in ((True, "measured, calibrates"), (False, "measured")):
        rows = [point for point in measured if point.calibrates == calibrates]
        if rows:
            panel.plot([p.workers for p in rows], [p.measured for p in rows], "o", color=DARK,
                       markersize=6, fillstyle="none" if calibrates else "full", zorder=5,
                       label=label)  # fmt: skip
    _ideal(panel, known)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log", base=2)
    counts = sorted({point.workers for point in answer.points})
    panel.set_xticks(counts, [str(count) for count in counts])
    panel.yaxis.set_major_formatter(lambda value, _place: f"{value:,.0f}")
    panel.minorticks_off()
    panel.set_xlabel("workers", color=DARK)
    title = harmless(answer.name or answer.way).replace("\n", " ")
    title = title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"
    # A name may have dollars, which are no formula.
    panel.set_title(f"{title}: {answer.unit}", loc="left", fontweight="bold", fontsize=11,
                    parse_math=False)  # fmt: skip
    panel.legend(frameon=False, fontsize=9)
    panel.tick_params(length=0, colors=DARK)
    panel.grid(color="#e6eaed")
    panel.set_axisbelow(True)
    for side in ("top", "right", "bottom", "left"):
        panel.spines[side].set_visible(False)
    file.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of characters that the font lacks
        figure.savefig(file, dpi=130, facecolor="white")
    return True


def _line(panel: Any, points: list[Point], ps: int | None, color: str) -> None:
    """A line with its band."""
    counts = [point.workers for point in points]
    label = "predicted" if ps is None else f"{ps} ps"
    panel.plot(counts, [p.images_per_s for p in points], color=color, marker=".", label=label)
    panel.fill_between(counts, [p.low for p in points], [p.high for p in points], color=color,
                       alpha=0.15, linewidth=0)  # fmt: skip


def _ideal(panel: Any, known: list[Point]) -> None:
    """So many times one device alone."""
    if not known or not known[0].efficiency:
        return
    first = known[0]
    alone = (first.images_per_s or 0.0) / (first.efficiency or 1.0) / first.workers
    counts = sorted({point.workers for point in known})
    panel.plot(counts, [alone * count for count in counts], color=PALE, linewidth=1,
               linestyle=(0, (4, 3)), label="one device alone, so many times")  # fmt: skip
