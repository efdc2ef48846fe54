"""The table on the terminal, and the JSON file with every sample."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.measured import Measured, Result, Skipped


def figure(value: float, unit: str) -> str:
    """`0.31 s`, `21.4 s`, `117 MB`."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def print_table(results: Sequence[Result], console: Console) -> None:
    """Print one line per measurement: medians, and the range of the pairs."""
    table = Table("measure", "compared with", "that", "kit", "ratio", "all pairs", "bar", "met")
    for column in table.columns[2:7]:
        column.justify = "right"
        column.no_wrap = True
    for result in results:
        if isinstance(result, Skipped):
            table.add_row(result.title, f"[dim]skipped: {result.reason}[/dim]")
            continue
        ratio = f"{result.value:.3g}" if result.other else ""
        spread = " … ".join(f"{end(result.values):.3g}" for end in (min, max))
        table.add_row(
            result.title,
            result.other_way if result.other else "",
            figure(median(result.other), result.unit) if result.other else "",
            figure(median(result.kit), result.unit),
            ratio,
            spread,
            *_verdict(result),
        )
    console.print(table)


def _verdict(result: Measured) -> tuple[str, str]:
    if result.bar is None:
        return "none", ""
    bar = str(result.bar) if result.other else f"{result.bar} {result.unit}"
    return bar, "[green]yes[/green]" if result.met else "[bold red]MISSED[/bold red]"


def write_json(results: Sequence[Result], machine: dict[str, Any], file: Path) -> None:
    """Write all measurements with all samples."""
    told = {"machine": machine, "results": [_told(result) for result in results]}
    file.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")


def _told(result: Result) -> dict[str, Any]:
    if isinstance(result, Skipped):
        return {"key": result.key, "title": result.title, "skipped": result.reason}
    return _told_measured(result)


def _told_measured(result: Measured) -> dict[str, Any]:
    return {
        "key": result.key,
        "title": result.title,
        "unit": result.unit,
        "bar": str(result.bar) if result.bar else None,
        "met": result.met,
        "is_ratio": bool(result.other),
        "median": result.value,
        "min": min(result.values),
        "max": max(result.values),
        "values": result.values,
        "kit": result.kit,
        "other": result.other,
        "other_way": result.other_way if result.other else None,
        "load_before_after": result.load,
    }
