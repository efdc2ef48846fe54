"""Predictions of published tables beside what was measured, from docs/predict.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from cluster_kit.util.paths import FILES
from docs.blocks.table import table

FILE = FILES / "docs" / "predict.json"
HERE = FILES / "docs" / "predict-here.json"
PREDICTORS = ("error", "line", "formula")
"""The model and its two rivals, by their keys."""

Rows = Sequence[Mapping[str, Any]]


def groups() -> dict[str, list[Mapping[str, Any]]]:
    """The rows by the kind of their table."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for facts in json.loads(FILE.read_text(encoding="utf-8")).values():
        found.setdefault(facts["group"], []).extend(facts["rows"])
    return found


def summary() -> str:
    """A row for each kind of table: median and worst error of the model and its rivals."""
    headings = ("tables", "rows", "`predict`", "straight line", "formula", "within the band")
    rows = []
    for group, found in groups().items():
        errors = {key: [abs(row[key]) for row in found] for key in PREDICTORS}
        best = min(PREDICTORS, key=lambda key: max(errors[key]))
        cells = [
            ("**" if key == best else "")
            + f"{median(values):.1%}, {max(values):.1%}"
            + ("**" if key == best else "")
            for key, values in errors.items()
        ]
        inside = sum(row["low"] <= row["measured"] <= row["high"] for row in found)
        rows.append((group, str(len(found)), *cells, f"{inside} of {len(found)}"))
    return table(headings, rows)


def every_row() -> str:
    """Every row that did not calibrate."""
    headings = (
        "table", "workers", "ps", "measured", "predicted", "from … to", "error", "line", "formula",
        "what limits",
    )  # fmt: skip
    rows = [
        (
            facts["name"],
            str(row["workers"]),
            str(row["ps"] or ""),
            f"{row['measured']:,g}",
            f"{row['predicted']:,.0f}",
            f"{row['low']:,.0f} … {row['high']:,.0f}",
            *(f"{row[key]:+.1%}" for key in PREDICTORS),
            str(row["limit"]).partition(";")[0],
        )
        for facts in json.loads(FILE.read_text(encoding="utf-8")).values()
        for row in facts["rows"]
    ]
    return table(headings, rows)


def here_summary() -> str:
    """A row for each way and model that was trained on emulated machines: median and worst."""
    groups = json.loads(HERE.read_text(encoding="utf-8"))
    found = {name: facts["rows"] for name, facts in groups.items()}
    found["all"] = [row for rows in found.values() for row in rows]
    rows = []
    for name, cells in found.items():
        errors = {key: [abs(row[key]) for row in cells] for key in PREDICTORS}
        pairs = [f"{median(values):.1%}, {max(values):.1%}" for values in errors.values()]
        rows.append((name, str(len(cells)), *pairs))
    return table(("way, model", "cells", "`predict`", "straight line", "formula"), rows)


def here_rows() -> str:
    """Every cell on emulated machines, those that calibrated first."""
    headings = (
        "way, model", "workers", "ps", "Mbit/s", "straggler", "measured", "predicted", "error",
        "line", "formula", "load", "what limits",
    )  # fmt: skip
    rows = []
    for name, facts in json.loads(HERE.read_text(encoding="utf-8")).items():
        for row in (*facts["calibrated"], *facts["rows"]):
            measured = row.get("measured", row.get("images_per_s"))
            predicted = (
                [f"{row['predicted']:,.0f}", *(f"{row[key]:+.1%}" for key in PREDICTORS)]
                if "predicted" in row
                else ["calibrates", "", "", ""]
            )
            rows.append((
                name, str(row["workers"]), str(row["ps"] or ""), str(row["mbit"]),
                _straggler(row), f"{measured:,.0f}", *predicted,
                f"{max(row['load']):.0f}", str(row.get("limit", "")).partition(";")[0],
            ))  # fmt: skip
    return table(headings, rows)


def _straggler(row: Mapping[str, Any]) -> str:
    if not row["straggler"]:
        return ""
    others = f" (others {row['speed']:g} times as fast)" if "speed" in row else ""
    return f"{row['straggler']:g}{others}"
