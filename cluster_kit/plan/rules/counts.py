"""How many tasks of which role, and tables for tasks that do not exist. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.cluster import ROLES, Role
from cluster_kit.errors import Problem
from cluster_kit.manifest.names import TASK
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan import addresses
from cluster_kit.programs.style import check_style


def check_counts(manifest: Manifest) -> Iterator[Problem]:
    """Yields counts that no cluster can have, or that the manifest's style cannot mean."""
    if manifest.chief not in (0, 1):
        rule = "a cluster has at most one chief"
        yield Problem("chief", str(manifest.chief), rule, "write `chief = 1`", ())
    if manifest.evaluator not in (0, 1):
        rule = "a cluster has at most one evaluator, in a spec of its own"
        yield Problem("evaluator", str(manifest.evaluator), rule, "write `evaluator = 1`")
    if manifest.worker < 1:
        rule = "a cluster needs at least one worker"
        yield Problem("worker", str(manifest.worker), rule, "write `worker = 1`")
    if manifest.ps < 0:
        rule = "a count cannot be negative"
        yield Problem("ps", str(manifest.ps), rule, "write `ps = 0` or more", ())
    yield from check_style(manifest)
    if too_many(manifest):
        role = "worker" if manifest.worker >= manifest.ps else "ps"
        rule = f"so many tasks fit in no subnet up to a /{addresses.WIDEST}"
        yield Problem(role, str(getattr(manifest, role)), rule, "ask for fewer tasks")


def check_tasks_exist(manifest: Manifest) -> Iterator[Problem]:
    """Yields every table `[task.…]` of a task that the cluster does not have."""
    for name in manifest.task:
        place = f"task.{name}"
        match = TASK.fullmatch(name)
        if match is None:
            rule = "no task is called that"
            cure = "tasks are called like `worker-1`: a role and its index"
            yield Problem(place, "", rule, cure, ())
            continue
        role, index, count = match[1], int(match[2]), getattr(manifest, match[1])
        if index >= count:
            rule = f"there is no such task: {role} = {count}"
            cure = "take the override out"
            if index == 0 or role in ("worker", "ps"):
                cure = f"raise `{role}` to {index + 1}, or {cure}"
            yield Problem(place, "", rule, cure, (role,))


def last_indexes(manifest: Manifest) -> tuple[tuple[Role, int], ...]:
    """The highest index of each role that has a task."""
    counts = ((role, getattr(manifest, role)) for role in ROLES)
    return tuple((role, count - 1) for role, count in counts if count > 0)


def too_many(manifest: Manifest) -> bool:
    """Whether no subnet could hold the tasks: then nothing may count through them."""
    return addresses.prefix_needed(last_indexes(manifest)) is None
