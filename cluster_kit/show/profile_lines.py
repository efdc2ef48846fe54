"""A profile in words: where a step's time goes for each task, its longest ops, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

KINDS = ("compute", "waiting", "sending", "input", "dispatch", "idle")
"""In profile.json, and of the columns; at each moment a task does one of these."""
OPS = 3
HOW = "open it at https://ui.perfetto.dev (the file stays in your browser) or in chrome://tracing"


def tasks_table(facts: Mapping[str, Any]) -> Table:
    """One row for each task that was traced."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task")
    for heading in ("runs", "ms each", *KINDS):
        table.add_column(heading, justify="right")
    table.add_column("waits for")
    for name, row in facts["tasks"].items():
        shares = (f"{100 * row['shares'].get(kind, 0.0):.0f} %" for kind in KINDS)
        table.add_row(
            Text(name), str(row["runs"] or "-"), each(row), *shares, Text(row["waits_for"])
        )
    return table


def ops_table(facts: Mapping[str, Any]) -> Table:
    """The longest ops of each task."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task")
    table.add_column("longest ops")
    table.add_column("times", justify="right")
    table.add_column("ms", justify="right")
    for name, row in facts["tasks"].items():
        for place, op in enumerate(row["longest_ops"][:OPS]):
            label = f"{op['name']} ({op['op']})"
            table.add_row(
                Text("" if place else name), Text(label), str(op["count"]), f"{op['ms']:.1f}"
            )
    return table


def each(row: Mapping[str, Any]) -> str:
    """Milliseconds from one run of a task's graph to the next."""
    return f"{1000 * row['seconds'] / row['runs']:.1f}" if row["runs"] else "-"


def remarks(facts: Mapping[str, Any]) -> Iterator[str]:
    """What a person should know besides: tasks without a trace, no step, what it cost."""
    for task, why in facts["missing"].items():
        yield f"{task} is missing in the trace: {why}"
    if not any(row["runs"] for row in facts["tasks"].values()):
        yield (
            f"no step was made in these {facts['seconds']:g} s: profile while it trains, "
            "or for longer (--seconds)"
        )
    before, during = facts["steps_per_s"]["before"], facts["steps_per_s"]["during"]
    if before and during is not None:
        change = 100 * (1 - during / before)
        slower = f"{change:.0f} % slower" if change >= 1 else "no slower"
        yield f"steps/s: {before:g} before, {during:g} while it was traced ({slower})"


def size(count: int) -> str:
    """Bytes, as people read them."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
