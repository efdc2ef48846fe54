"""Rule: templated arguments give a program all addresses that it needs."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.advice.hint import Hint
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan.arguments import names_in
from cluster_kit.programs.catalog import PROGRAMS
from cluster_kit.programs.style import style_of
from cluster_kit.roles import CHIEF


def check(manifest: Manifest) -> Iterator[Hint]:
    """Yields address arguments if only the chief runs the program, or if the chief's are absent."""
    names = names_in(manifest.args)
    describe_cluster = {"role", "worker_hosts"} <= names
    if not describe_cluster or manifest.program in PROGRAMS or manifest.count(CHIEF.name) != 1:
        return
    if style_of(manifest) == "coordinator":
        yield Hint(
            "args",
            "they tell each task its place, but only the chief runs the program",
            "under a coordinator, ps and workers are servers",
            'write `style = "all-tasks"` (make: STYLE=all-tasks), and `chief = 0` (N_CHIEF=0) '
            "if worker 0 is the program's chief",
        )
    elif "chief_hosts" not in names:
        yield Hint(
            "args",
            f"chief-0 gets the role `{manifest.chief_job}`, but no task gets its address",
            "every task's job needs its addresses",
            "write `chief = 0` (make: N_CHIEF=0) if worker 0 is the program's chief, or pass "
            "{{ chief_hosts }}, too",
        )
