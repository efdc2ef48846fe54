"""From a scenario to the faults of one cluster, each on one task. Pure: a seed decides the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from cluster_kit.contract.times import STOP_GRACE_S
from cluster_kit.drill.kinds import KINDS
from cluster_kit.drill.scenario import RANDOM, At, Fault, Scenario
from cluster_kit.drill.scenario_file import Written
from cluster_kit.drill.training_length import length_of
from cluster_kit.resolved import Cluster

SLOW_CPUS = 0.1
DELAY_S, LOSS_PERCENT, RATE = 0.1, 5.0, 10 * 10**6
EARLIEST, LATEST = 0.1, 0.7
"""The part of the training in which random faults come."""
RANDOM_SECONDS = (2.0, 10.0)
"""The same of a program whose length is not known."""


@dataclass(frozen=True)
class Planned:
    """A fault of one task. `number` is that of its row in the scenario, from 1.

    `lasts` are seconds, None for good; `grace` and `delay` are in seconds, `cpus` in cores, `rate`
    in bits per second; `sources` are the tasks that it is cut off from, () for all.
    """

    number: int
    kind: str
    task: str
    at: At
    lasts: float | None = None
    grace: float = STOP_GRACE_S
    cpus: float = SLOW_CPUS
    sources: tuple[str, ...] = ()
    delay: float = DELAY_S
    percent: float = LOSS_PERCENT
    rate: int = RATE

    def __str__(self) -> str:
        lasts = f" for {self.lasts:g} s" if self.lasts else ""
        apart = f" from {', '.join(self.sources)}" if self.sources else ""
        return f"fault {self.number} ({self.kind} of {self.task}{apart}{lasts} {self.at})"


@dataclass(frozen=True)
class Injected:
    """A fault that was injected at `time`; the newest checkpoint was then from `saved_at`.

    Both in Unix seconds; `saved_at` is None if there was no checkpoint yet.
    """

    fault: Planned
    time: float
    saved_at: float | None = None


def plan(scenario: Scenario, cluster: Cluster, seed: int) -> tuple[Planned, ...]:
    """All faults, in the scenario's order; one of a role is one for each of its tasks."""
    random = Random(seed)
    return tuple(
        Planned(
            number,
            fault.kind,
            task,
            fault.at,
            fault.lasts,
            STOP_GRACE_S if fault.grace is None else fault.grace,
            SLOW_CPUS if fault.cpus is None else fault.cpus,
            fault.sources or (),
            DELAY_S if fault.delay is None else fault.delay,
            LOSS_PERCENT if fault.percent is None else fault.percent,
            RATE if fault.rate is None else fault.rate,
        )
        for number, fault in enumerate(scenario.fault, 1)
        for task in _tasks(fault, cluster, random)
    )


def _tasks(fault: Fault, cluster: Cluster, random: Random) -> Sequence[str]:
    if fault.role is not None:
        return [task.name for task in cluster.of(fault.role)]
    if fault.task == RANDOM:
        names = candidates(fault.kind, cluster)
        return [random.choice([name for name in names if name not in (fault.sources or ())])]
    return [str(fault.task)]


def candidates(kind: str, cluster: Cluster) -> list[str]:
    """The names of the tasks that a fault of this kind may meet by chance."""
    spared = cluster.leader if KINDS[kind].spares_leader else None
    return [task.name for task in cluster.tasks if task is not spared]


def random_scenario(cluster: Cluster, seed: int, faults: int) -> Written:
    """So many faults of any kind that every host allows, on any task, at any time.

    The run has to succeed all the same.
    """
    random = Random(f"faults {seed}")
    chosen = tuple(_any(random, cluster) for _ in range(faults))
    numbers = tuple(range(1, faults + 1))
    return Written(Scenario(fault=chosen, seed=seed), f"{faults} random faults", numbers=numbers)


def _any(random: Random, cluster: Cluster) -> Fault:
    kind = random.choice([kind for kind in KINDS.values() if not kind.beside])
    given: dict[str, object] = {
        "kind": kind.name,
        "task": random.choice(candidates(kind.name, cluster)),
    }
    steps, part = length_of(cluster).steps, random.uniform(EARLIEST, LATEST)
    if steps is not None:
        given["at"] = {"step": max(1, round(part * steps))}
    else:
        given["at"] = {"seconds": round(random.uniform(*RANDOM_SECONDS), 1)}
    if kind.lasts:
        given["for"] = random.choice(kind.lasts)
    return Fault.model_validate(given)
