"""Templated arguments that cannot tell a program what it needs to know."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.arguments import names_in
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.style import style_of
from cluster_kit.roles import CHIEF


def look(manifest: Manifest) -> Iterator[Hint]:
    """Addresses of the others, for a chief that runs alone, or without the chief's own."""
    names = names_in(manifest.args)
    tells = {"role", "worker_hosts"} <= names
    if not tells or manifest.program in PROGRAMS or manifest.count(CHIEF.name) != 1:
        return
    if style_of(manifest) == "coordinator":
        yield Hint(
            "args",
            "they tell each task its place, but only the chief runs the program",
            "under a coordinator, ps and workers are servers",
            'write `style = "all-tasks"` (make: STYLE=all-tasks), and `chief = 0` (N_CHIEF=0) '
            "where worker 0 is the program's chief",
        )
    elif "chief_hosts" not in names:
        yield Hint(
            "args",
            f"chief-0 is told that it is `{manifest.chief_job}`, and nobody where that is",
            "every task's job needs its addresses",
            "write `chief = 0` (make: N_CHIEF=0) where worker 0 is the program's chief, or hand "
            "on {{ chief_hosts }}, too",
        )
