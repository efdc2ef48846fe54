"""Rules: limits fit the host, and environment variables are valid and not the kit's. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cluster_kit.facts import HostFacts
from cluster_kit.manifest.limits import RESERVED, Limits
from cluster_kit.manifest.names import TASK
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem, Setting
from cluster_kit.roles import ROLES
from cluster_kit.util.toml_text import to_toml

IDLE_SERVER = 82 << 20
"""Bytes that TensorFlow's server takes if it is idle, and so any task at least."""
ENOUGH = "512m"


def check_limits(manifest: Manifest, facts: HostFacts) -> Iterator[Problem]:
    """Yields limits that this host cannot give, and environment variables that cannot be set."""
    tables: dict[str, Limits] = {f"role.{r}": manifest.limits(r) for r in ROLES}
    tables |= {f"task.{name}": limits for name, limits in manifest.task.items()}
    for place, limits in tables.items():
        yield from _check_table(place, limits, facts)
    total = _memory_limits(manifest)
    alone = all((limits.memory or 0) <= facts.memory for limits in tables.values())
    if alone and total > facts.memory:
        rule = f"all memory limits add up to {_gib(total)}, this host has {_gib(facts.memory)}"
        cure = "lower the limits or ask for fewer tasks"
        yield Problem("memory", "", rule, cure, (*ROLES, "role", "task"))


def _memory_limits(manifest: Manifest) -> int:
    """The sum of all tasks' memory limits in bytes: the roles' limits, corrected by the tasks'."""
    of_role: dict[str, int] = {r: manifest.limits(r).memory or 0 for r in ROLES}
    total: int = sum(of_role[role] * max(0, manifest.count(role)) for role in ROLES)
    for name, of_task in manifest.task.items():
        match = TASK.fullmatch(name)
        if match and of_task.memory is not None and int(match[2]) < manifest.count(match[1]):
            total += of_task.memory - of_role[match[1]]
    return total


def _check_table(place: str, limits: Limits, facts: HostFacts) -> Iterator[Problem]:
    """Yields what is invalid in one table `[role.…]` or `[task.…]`."""
    if limits.cpus is not None and limits.cpus > facts.cpus:
        rule = f"this host has {facts.cpus} CPUs"
        most = Setting(f"{place}.cpus", facts.cpus)
        yield Problem(most.key, f"{limits.cpus:g}", rule, ("at most ", most))
    if limits.memory is not None and limits.memory > facts.memory:
        rule = f"this host has {_gib(facts.memory)}"
        most = Setting(f"{place}.memory", f"{facts.memory // 2**20}m")
        yield Problem(most.key, _gib(limits.memory), rule, ("at most ", most))
    if limits.memory is not None and limits.memory < IDLE_SERVER:
        rule = f"a TensorFlow server takes {_mib(IDLE_SERVER)} before it does any work"
        enough = Setting(f"{place}.memory", ENOUGH)
        yield Problem(enough.key, _mib(limits.memory), rule, ("for example ", enough))
    for key in limits.environment:
        yield from check_name(f"{place}.environment.{key}", "", key)
    for key in limits.secrets or ():
        yield from check_name(f"{place}.secrets", to_toml(key), key)
        if key in limits.environment:
            rule = "it has a value in `environment`, too"
            yield Problem(f"{place}.secrets", to_toml(key), rule, "take one of them out")


def check_name(place: str, value: str, key: str) -> Iterator[Problem]:
    """Yields what is wrong with the name of an environment variable."""
    if RESERVED.fullmatch(key):
        rule = "this variable is the kit's own: it decides what the task is"
        yield Problem(place, value, rule, "take it out")
    elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
        rule = "not a valid name of an environment variable"
        yield Problem(place, value, rule, "letters, digits and _ only")


def _mib(size: int) -> str:
    return f"{size / 2**20:.3g} MiB"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
