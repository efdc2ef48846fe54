"""Traces that were taken of a run: where each is, and where the time of a step went."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from cluster_kit.observe.progress import number, plain, weight
from cluster_kit.util.untrusted import files, read

FOLDER, FACTS = "profile", "profile.json"
MOST, MOST_OPS = 5, 3
"""Traces in one report, and ops of each task: a page stays small."""
MOST_READ, LARGEST, HEAVIEST = 20, 1 << 20, 50_000
"""Traces that are looked at; bytes and weight of one profile.json."""
_FIGURE = (int, float)
_NEEDED: Mapping[str, Any] = {
    "began": _FIGURE, "seconds": _FIGURE, "trace_bytes": _FIGURE,
    "tasks": dict, "missing": dict, "steps_per_s": dict, "trace": str, "folder": str,
}  # fmt: skip
_OF_TASK: Mapping[str, Any] = {
    "runs": (*_FIGURE, type(None)), "seconds": _FIGURE, "shares": dict, "waits_for": str,
    "longest_ops": list,
}  # fmt: skip


def profiles_of(output: Path, since: float) -> list[dict[str, Any]]:
    """What profile.json says of each trace that was begun since Unix time `since`, oldest first.

    The last MOST are kept. One that is not whole is left out.
    """
    named = files(output, FOLDER, matches=FACTS.__eq__, deepest=1)
    names = sorted(file.name for file in named if file.name.count("/") == 2)
    newest = (_read(output, name) for name in reversed(names[-MOST_READ:]))
    whole = (facts for facts in newest if facts and facts["began"] >= since)
    return list(islice(whole, MOST))[::-1]


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


def _read(output: Path, name: str) -> dict[str, Any] | None:
    try:
        return checked(json.loads(read(output, name, LARGEST)))
    except (OSError, ValueError, RecursionError):
        return None


def checked(facts: object) -> dict[str, Any] | None:
    """The facts of a trace, each of its type; None if one of them is missing or something else."""
    cleaned = plain(facts)
    if not isinstance(cleaned, dict) or weight(cleaned) > HEAVIEST:
        return None
    whole = all(isinstance(cleaned.get(key), kind) for key, kind in _NEEDED.items())
    whole = whole and all(
        isinstance(cleaned["steps_per_s"].get(key), (*_FIGURE, type(None)))
        for key in ("before", "during")
    )
    return cleaned if whole and all(map(_is_row, cleaned["tasks"].values())) else None


def _is_row(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    if not all(isinstance(row.get(key), kind) for key, kind in _OF_TASK.items()):
        return False
    shares, ops = row["shares"].values(), row["longest_ops"]
    return all(number(share) is not None for share in shares) and all(map(_is_op, ops))


def _is_op(op: object) -> bool:
    kinds: dict[str, Any] = {"name": str, "op": str, "count": _FIGURE, "ms": _FIGURE}
    return isinstance(op, dict) and all(isinstance(op.get(k), kind) for k, kind in kinds.items())
