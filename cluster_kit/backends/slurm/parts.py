"""What the job asks Slurm for: one part, or one for each kind of tasks. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cluster_kit.backends.container_spec import ContainerSpec
from cluster_kit.backends.slurm.shell import names
from cluster_kit.cluster import Cluster

MIB = 2**20
MARGIN_S = 600
"""What the time limit has on top of all deadlines: for the nodes, and for the end."""
WARNING_S = 60
"""The script gets SIGTERM so many seconds before Slurm's time limit: the leader saves."""


@dataclass(frozen=True)
class Part:
    """A component of a heterogeneous job, or the whole job."""

    number: int
    options: tuple[str, ...]
    nodes: str
    slots: str
    tasks: str
    step: str


def parts(cluster: Cluster, specs: Mapping[str, ContainerSpec]) -> tuple[Part, ...]:
    """Returns the parts, in the order of their first tasks: tasks that ask for the same are one."""
    kinds: dict[tuple[int, int, int], list[str]] = {}
    for name, spec in specs.items():
        cpus = math.ceil(spec.cpus or 1)
        memory = 0 if spec.memory is None else math.ceil(spec.memory / cpus / MIB)
        gpus = len(spec.devices.ids) if spec.devices else 0
        kinds.setdefault((cpus, memory, gpus), []).append(name)
    several = len(kinds) > 1
    return tuple(
        _part(cluster, number, asked, tasks, f"_HET_GROUP_{number}" if several else "")
        for number, (asked, tasks) in enumerate(kinds.items())
    )


def _part(
    cluster: Cluster, number: int, asked: tuple[int, int, int], tasks: Sequence[str], suffix: str
) -> Part:
    cpus, memory, gpus = asked
    resources = [f"--ntasks={len(tasks)}", f"--cpus-per-task={cpus}"]
    resources += [f"--mem-per-cpu={memory}M"] if memory else []
    resources += [f"--gpus-per-task={gpus}"] if gpus else []
    alone = [] if number else list(_of_the_job(cluster))
    group = [f"--het-group={number}"] if suffix else []
    return Part(
        number=number,
        options=(*alone, *resources, *_everywhere(cluster)),
        nodes=f"SLURM_JOB_NODELIST{suffix}",
        slots=f"SLURM_TASKS_PER_NODE{suffix}",
        tasks=names(tasks),
        step=" ".join([*group, *resources]),
    )


def _of_the_job(cluster: Cluster) -> Iterator[str]:
    """Yields the options that only the first part has."""
    yield f"--job-name={cluster.project}"
    yield f"--output={cluster.project}-%j.log"
    yield f"--signal=B:TERM@{WARNING_S}"
    yield "--no-requeue"
    on, deadlines = cluster.slurm, cluster.deadlines
    assert on is not None
    if on.account:
        yield f"--account={on.account}"
    if on.time or deadlines.job:
        whole = deadlines.start + deadlines.job + deadlines.evaluator_grace + MARGIN_S
        yield f"--time={on.time or math.ceil(whole / 60)}"


def _everywhere(cluster: Cluster) -> Iterator[str]:
    """Yields the options that each part has."""
    on = cluster.slurm
    assert on is not None
    if on.partition:
        yield f"--partition={on.partition}"
    yield from on.options
