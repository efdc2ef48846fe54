"""The table of TensorFlow's versions, from the results of real runs in docs/versions.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cluster_kit.util.paths import FILES
from docs.blocks.table import table

FILE = FILES / "docs" / "versions.json"
HEADINGS = ("TensorFlow", "Keras, tf_keras", "servers", "run", "ended", "result")


def figures() -> str:
    """When the runs were made, and a row for each."""
    return page(json.loads(FILE.read_text(encoding="utf-8")))


def page(results: Sequence[Mapping[str, Any]]) -> str:
    days = " and ".join(sorted({facts["time"][:10] for facts in results}))
    return f"Real runs of {days}, on the CPU:\n\n" + table(HEADINGS, map(row, results))


def row(facts: Mapping[str, Any]) -> tuple[str, ...]:
    metrics = facts["metrics"].items()
    return (
        facts["tensorflow"] or facts["version"],
        f"{facts['keras'] or '-'}, {facts['tf_keras'] or '-'}",
        {"native": "C API", "python": "Python", "": "none"}[facts["servers"]],
        f"`{facts['manifest']}`",
        "well" if facts["success"] else "**failed**",
        ", ".join(f"{name.replace('_', ' ')} {value:.3g}" for name, value in metrics) or "-",
    )
