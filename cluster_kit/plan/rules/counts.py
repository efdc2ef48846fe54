"""Rules: the number of tasks of each role, and no tables of tasks that do not exist. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.manifest.field_types import TASK
from cluster_kit.manifest.schema import Manifest
from cluster_kit.plan import addresses
from cluster_kit.problem import HintText, Problem, Setting
from cluster_kit.programs.style import check_style
from cluster_kit.roles import ROLES, Role


def check_counts(manifest: Manifest) -> Iterator[Problem]:
    """Yields counts that no cluster can have, or that do not fit the manifest's style."""
    for row in ROLES.values():
        count = manifest.count(row.name)
        if not row.allows(count):
            yield Problem(row.name, str(count), *_broken_bound(row, count))
    yield from check_style(manifest)
    if too_many(manifest):
        role = max(ROLES, key=manifest.count)
        rule = f"so many tasks fit in no subnet up to a /{addresses.WIDEST}"
        yield Problem(role, str(manifest.count(role)), rule, "ask for fewer tasks")


def _broken_bound(role: Role, count: int) -> tuple[str, HintText]:
    """The rule that this count of a role breaks, and its hint."""
    if role.most == 1:
        spec = ", in a spec of its own" if role.sidecar else ""
        return f"a cluster has at most one {role.name}{spec}", ("write ", Setting(role.name, 1))
    if role.most is not None and count > role.most:
        rule = f"a cluster has at most {role.most} tasks of the role {role.name}"
        return rule, ("write ", Setting(role.name, role.most))
    if role.least:
        few = "one" if role.least == 1 else str(role.least)
        rule = f"a cluster needs at least {few} {role.name}"
        return rule, ("write ", Setting(role.name, role.least))
    return "a count cannot be negative", ("write ", Setting(role.name, 0), " or more")


def check_tasks_exist(manifest: Manifest) -> Iterator[Problem]:
    """Yields every table `[task.…]` of a task that the cluster does not have."""
    for name in manifest.task:
        key_path = f"task.{name}"
        match = TASK.fullmatch(name)
        if match is None:
            rule = "not a valid task name"
            hint: HintText = "tasks are called like `worker-1`: a role and its index"
            yield Problem(key_path, "", rule, hint)
            continue
        role, index, count = match[1], int(match[2]), manifest.count(match[1])
        if index >= count:
            rule = f"no such task: {role} = {count}"
            hint = "take the table out"
            if ROLES[role].allows(index + 1):
                hint = ("write ", Setting(role, index + 1), f", or {hint}")
            yield Problem(key_path, "", rule, hint, (role,))


def last_indexes(manifest: Manifest) -> tuple[tuple[str, int], ...]:
    """(role, highest valid index) of each role that has a task."""
    counts = ((name, manifest.count(name), row.most) for name, row in ROLES.items())
    return tuple((role, min(count, most or count) - 1) for role, count, most in counts if count > 0)


def too_many(manifest: Manifest) -> bool:
    """Whether the tasks fit in no subnet; then there may be far too many of them to list."""
    return addresses.prefix_needed(last_indexes(manifest)) is None
