"""The comparison as a table for people and as facts for scripts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from cluster_kit.compare.measure import Measured, Result
from cluster_kit.compare.variants import SCENARIOS, Length, Scenario

COLUMNS = ("way", "CPUs", "images/s", "to {:.0%}", "accuracy", "updates", "staleness", "per update")
NOTHING = "-"


def tables(results: Sequence[Result], accuracy: float) -> list[Table]:
    """One table for each scenario that was run."""
    by_scenario = {
        scenario: [result for result in results if result.run.scenario == scenario]
        for scenario in SCENARIOS
    }
    return [_table(scenario, rows, accuracy) for scenario, rows in by_scenario.items() if rows]


def _table(scenario: Scenario, results: Sequence[Result], accuracy: float) -> Table:
    table = Table(title=scenario.title, title_justify="left", title_style="bold", pad_edge=False)
    for heading in COLUMNS:
        left = heading in ("way", "per update")
        table.add_column(heading.format(accuracy), justify="left" if left else "right")
    for result in results:
        table.add_row(*_row(result))
    return table


def _row(result: Result) -> list[Text | str]:
    head: list[Text | str] = [result.run.variant.title, f"{result.run.cpus:g}"]
    if result.measured is None:
        why = result.failed or result.run.skipped
        label, style = ("FAILED", "bold red") if result.failed else ("left out", "dim")
        return [*head, Text(label, style=style), *[""] * 4, Text(why, style="dim")]
    measured = result.measured
    return [
        *head,
        number(measured.images_per_s, 0),
        number(measured.seconds_to_accuracy, 1, " s"),
        number(measured.accuracy, 3),
        number(measured.updates, 0),
        staleness(measured),
        traffic(measured),
    ]


def number(value: float | None, digits: int, unit: str = "") -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}{unit}"


def staleness(measured: Measured) -> str:
    """`0.98 (max 3)`."""
    if measured.staleness_mean is None:
        return NOTHING
    most = "" if measured.staleness_max is None else f" (max {measured.staleness_max})"
    return f"{measured.staleness_mean:.2f}{most}"


def traffic(measured: Measured) -> str:
    """`ps 4.9 MB, worker 5.0 MB`."""
    roles = measured.bytes_per_update.items()
    return ", ".join(f"{role} {size / 1e6:.2f} MB" for role, size in sorted(roles)) or NOTHING


def facts(
    results: Sequence[Result], accuracy: float, length: Length, cpus: float
) -> dict[str, Any]:
    """The content of compare.json."""
    return {
        "host_cpus": cpus,
        "accuracy": accuracy,
        "images": length.images(),
        "epochs": length.epochs,
        "results": [result.facts() for result in results],
    }
