"""Whether this host can do what a drill asks for: tried before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cluster_kit.drill.helpers import PROGRAMS, READY, program_of, trial_of
from cluster_kit.drill.plan import Planned
from cluster_kit.errors import EngineError, HostError
from cluster_kit.platforms.engine import Engine, reaching
from cluster_kit.resolved import Cluster

LIMITS = {"memory": "MemoryLimit", "slow": "CpuCfsQuota"}
"""What an engine has to be able to limit, as `docker info` names it."""


def refuse_if_unable(engine: Engine, cluster: Cluster, faults: Sequence[Planned]) -> None:
    """Raises HostError with every kind of fault that is not possible, and how it would be."""
    told = [*_without_limits(engine, faults), *_without_rights(engine, cluster, faults)]
    if told:
        message = "this host cannot do what the drill asks for\n" + "\n".join(m for m, _ in told)
        hints = list(dict.fromkeys(hint for _, hint in told))
        raise HostError(message, "\n".join([*hints, "or take these faults out of the scenario"]))


def _without_limits(engine: Engine, faults: Sequence[Planned]) -> Iterator[tuple[str, str]]:
    kinds = {fault.kind for fault in faults} & set(LIMITS)
    facts = engine.info() if kinds else {}
    for kind in sorted(kinds):
        if facts.get(LIMITS[kind]) is False:
            yield (
                f"  {kind}: the engine has no control group for it",
                "use an engine that the host's root has started: a rootless one may limit nothing",
            )


def _without_rights(
    engine: Engine, cluster: Cluster, faults: Sequence[Planned]
) -> Iterator[tuple[str, str]]:
    for program, hint in PROGRAMS.items():
        kinds = dict.fromkeys(fault.kind for fault in faults if program_of(fault) == program)
        if not kinds:
            continue
        try:
            said = reaching(engine).start_helper(cluster.name, trial_of(program, cluster.image))
        except EngineError as error:
            said = error.message
        if said != READY:
            yield f"  {', '.join(kinds)}: {said or 'its helper said nothing'}", hint
