"""The tables of the fault matrix, from the results of a real run in docs/matrix.json."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cluster_kit.drill.matrix import BREAKS, ENDED, PLACES, SYSTEMS, WENT_ON, cells_of
from cluster_kit.util.paths import FILES
from cluster_kit.workspace import Workspace
from docs.blocks.table import table

FILE = FILES / "docs" / "matrix.json"
Facts = Mapping[str, Any]
NONE = "-"


def figures() -> str:
    """When and where it was taken, a table for each system, and every miss as a sentence."""
    return page(json.loads(FILE.read_text(encoding="utf-8")))


def page(results: Sequence[Facts]) -> str:
    systems = dict.fromkeys(facts["system"] for facts in results)
    parts = [source(results)]
    for system in systems:
        parts += [f"### {system}", of_system([f for f in results if f["system"] == system])]
    missed = [facts for facts in results if facts["misses"]]
    whole = len(cells_of(SYSTEMS, Workspace(FILES)))
    good = len(results) - len(missed)
    count = f"{len(results)} of {whole} cells were run; {good} passed."
    parts += ["### Misses", count, *(["\n".join(map(miss, missed))] if missed else [])]
    return "\n\n".join(parts)


def source(results: Sequence[Facts]) -> str:
    """Machine, days, commits and load, each as often as there are different ones."""
    days = sorted({facts["time"][:10] for facts in results})
    machines = sorted({facts["machine"] for facts in results})
    commits = Counter(facts["commit"] for facts in results)
    shown = ", ".join(f"`{one}` ({n} cells)" for one, n in commits.items())
    loads = sorted(facts["load"] for facts in results)
    return (
        f"Taken on {' and '.join(days)}, on {' and '.join(machines)}, from commit {shown};"
        f" the load average at the end of a run was {loads[0]:g} to {loads[-1]:g}."
    )


def of_system(results: Sequence[Facts]) -> str:
    """Rows are faults, columns the roles that the system has."""
    by_place = {(facts["fault"], facts["role"]): facts for facts in results}
    roles = [role for role in PLACES if any(facts["role"] == role for facts in results)]
    faults = [str(one) for one in BREAKS if any(f["fault"] == str(one) for f in results)]
    tasks = {facts["role"]: facts["task"] for facts in results if facts["task"]}
    return table(
        ("fault", *(f"{role} ({tasks.get(role, NONE)})" for role in roles)),
        [(fault, *(cell(by_place.get((fault, role))) for role in roles)) for fault in faults],
    )


def cell(facts: Facts | None) -> str:
    """`0.6 / 2.5 / 0`; bold if it misses the aim."""
    if facts is None:
        return NONE
    if facts["verdict"] == WENT_ON:
        lost = NONE if facts["steps_lost"] is None else str(facts["steps_lost"])
        said = (
            f"{seconds(facts['detected_after_s'])} / {seconds(facts['going_on_after_s'])} / {lost}"
        )
    elif facts["verdict"] == ENDED:
        said = f"ended: `{facts['reason']}`, {seconds(facts['detected_after_s'])}"
    else:
        said = facts["verdict"]
    return f"**{said}**" if facts["misses"] else said


def seconds(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def miss(facts: Facts) -> str:
    return f"- {facts['system']}, {facts['role']}, {facts['fault']}: {'; '.join(facts['misses'])}"
