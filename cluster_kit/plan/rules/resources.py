"""Rules: shared memory that fits, and ulimits that there are. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from cluster_kit.facts import HostFacts
from cluster_kit.manifest.limits import Limits
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem, Setting
from cluster_kit.util.nearest import proposal

ULIMITS = (
    "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc",
    "rss", "rtprio", "rttime", "sigpending", "stack",
)  # fmt: skip


def check_resources(manifest: Manifest, facts: HostFacts) -> Iterator[Problem]:
    """Yields shared memory that a task cannot have, and ulimits that do not exist."""
    for table, limits in manifest.limits_by_table():
        yield from _check_shm(f"{table}.shm_size", limits, facts)
        for name in limits.ulimits:
            if name not in ULIMITS:
                cure = proposal(name, list(ULIMITS)) or f"there are: {', '.join(ULIMITS)}"
                yield Problem(f"{table}.ulimits.{name}", "", "no such ulimit", cure)


def _check_shm(place: str, limits: Limits, facts: HostFacts) -> Iterator[Problem]:
    if limits.shm_size is None:
        return
    value = f"{limits.shm_size / 2**30:.3g} GiB"
    if limits.shm_size > facts.memory:
        rule = f"this host has {facts.memory / 2**30:.1f} GiB of memory"
        most = Setting(place, f"{facts.memory // 2**20}m")
        yield Problem(place, value, rule, ("at most ", most))
    elif limits.memory is not None and limits.shm_size > limits.memory:
        rule = f"it counts as memory, of which the task has {limits.memory / 2**30:.3g} GiB"
        yield Problem(place, value, rule, "raise `memory` there, or lower this")
