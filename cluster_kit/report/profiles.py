"""Traces that were taken of a run: where each is, and where the time of a step went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER, FACTS = "profile", "profile.json"
MOST, MOST_OPS = 5, 3
"""Traces in one report, and ops of each task: a page stays small."""
_NEEDED = {"began", "seconds", "tasks", "missing", "trace", "trace_bytes", "folder", "steps_per_s"}


def profiles_of(output: Path, since: float) -> list[dict[str, Any]]:
    """What profile.json says of each trace that was begun since Unix time `since`, oldest first.

    The last MOST are kept. One that is not whole is left out.
    """
    found = (_read(file) for file in sorted((output / FOLDER).glob(f"*/{FACTS}")))
    return [facts for facts in found if facts and facts["began"] >= since][-MOST:]


def profile_facts(facts: Mapping[str, Any], began: float) -> dict[str, Any]:
    """What a report says of a trace; `at` in seconds since the run began."""
    return {
        "at": round(facts["began"] - began, 3),
        "seconds": facts["seconds"],
        "file": f"output/{facts['folder']}/{facts['trace']}",
        "bytes": facts["trace_bytes"],
        "missing": dict(facts["missing"]),
        "steps_per_s": dict(facts["steps_per_s"]),
        "tasks": [
            {
                "name": name,
                "runs": row["runs"],
                "seconds": row["seconds"],
                "shares": row["shares"],
                "waits_for": row["waits_for"],
                "longest_ops": row["longest_ops"][:MOST_OPS],
            }
            for name, row in facts["tasks"].items()
        ],
    }


def _read(file: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and facts.keys() >= _NEEDED else None
