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


PASSING = {"time", "load"}
"""Facts of a machine that differ in each run."""
WORDS = {
    "met": "[green]yes[/green]",
    "missed": "[bold red]MISSED[/bold red]",
    "undecided": "[yellow]undecided[/yellow]",
}


def _verdict(result: Measured) -> tuple[str, str]:
    if result.bar is None:
        return "none", ""
    bar = str(result.bar) if result.other else f"{result.bar} {result.unit}"
    return bar, WORDS[result.verdict]


def write_json(results: Sequence[Result], machine: dict[str, Any], folder: Path) -> None:
    """Write all measurements with all samples to bench.json, and append them to history.jsonl."""
    facts = {"machine": machine, "results": [_told(result) for result in results]}
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    (folder / "bench.json").write_text(f"{text}\n", encoding="utf-8")
    with (folder / "history.jsonl").open("a", encoding="utf-8") as history:
        history.write(json.dumps(facts, ensure_ascii=False) + "\n")


def read_json(file: Path) -> dict[str, Any]:
    """The newest run in a bench.json or history.jsonl; raises OSError or ValueError."""
    text = file.read_text(encoding="utf-8")
    last = text.strip().splitlines()[-1] if file.suffix == ".jsonl" and text.strip() else text
    facts = json.loads(last)
    if not isinstance(facts, dict) or not {"machine", "results"} <= set(facts):
        raise ValueError("not a file of `make bench`")
    return facts


def print_changes(
    results: Sequence[Result], machine: dict[str, Any], before: dict[str, Any], console: Console
) -> None:
    """Print each value beside that of an earlier run; a change within both spreads is noise."""
    was = before["machine"]
    if other := sorted(
        key for key in {*machine, *was} - PASSING if machine.get(key) != was.get(key)
    ):
        console.print(f"not the same machine: {', '.join(other)} differ")
    earlier = {row["key"]: row for row in before["results"] if "median" in row}
    table = Table("measure", "before", "now", "change", "")
    for result in results:
        row = earlier.get(result.key)
        if isinstance(result, Skipped) or row is None:
            continue
        low, high = result.interval
        noise = low <= row["max"] and row["min"] <= high
        change = f"{result.value / row['median'] - 1:+.1%}" if row["median"] else ""
        words = "within the spread" if noise else ""
        table.add_row(result.title, f"{row['median']:.3g}", f"{result.value:.3g}", change, words)
    console.print(table)


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
        "verdict": result.verdict,
        "interval": result.interval,
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
