"""Finds the known values of a run's secrets, and masks them in texts and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.platforms.rendered_file import is_secret
from cluster_kit.platforms.variables import known_secrets, masked_of_addresses
from cluster_kit.resolved import Cluster
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.run_directory import Record, read_record
from cluster_kit.run.verdict import Verdict
from cluster_kit.util.masking import MASK, Mask, looks_secret, masked_facts, masker
from cluster_kit.workspace import RunDirectory

Connect = Callable[[], Engine | None]


@dataclass(frozen=True)
class Known:
    """The values of a run's secrets that are known now.

    `are_all`: whether the values of all secrets are known. It is False after the containers were
    removed, since no file has the values.
    """

    values: frozenset[str]
    are_all: bool

    @property
    def mask(self) -> Mask:
        """A function that masks the values in tasks' texts; whole texts if a value is unknown."""
        return masker(self.values) if self.are_all else lambda text: MASK if text else ""


def known_of(run: RunDirectory, connect: Connect = lambda: None) -> Known:
    """The known secrets of a run in this directory.

    Args:
        connect: returns the engine, or None if none answers; it is called if the run has secrets.
    """
    try:
        record = read_record(run)
    except UsageError:
        record = None
    if record is None:
        return Known(frozenset(), are_all=False)
    if not any(_declared(record.cluster)):
        return Known(frozenset(), are_all=True)
    engine = connect()
    containers = containers_of(run, engine)
    if containers and engine and record.cluster.sidecars:
        containers += _sidecars(engine, record)
    return known_by(record.cluster, containers)


def known_by(cluster: Cluster, containers: Iterable[Container]) -> Known:
    """A cluster's secrets, as far as its existing containers have them."""
    existing = list(containers)
    are_up = {task.name for task in cluster.tasks} <= {container.name for container in existing}
    return Known(frozenset(values_of(cluster, existing)), are_up or not any(_declared(cluster)))


def containers_of(run: RunDirectory, engine: Engine | None) -> list[Container]:
    """The containers of a run that are still there; none if no engine answers."""
    if engine is None:
        return []
    try:
        every_container = [one for name in engine.clusters() for one in engine.containers(name)]
    except EngineError:
        return []
    return [one for one in every_container if one.output and Path(one.output).parent == run.path]


def _sidecars(engine: Engine, record: Record) -> list[Container]:
    try:
        return engine.sidecars(record.cluster.name, record.id)
    except EngineError:
        return []


def values_of(cluster: Cluster, containers: Iterable[Container]) -> set[str]:
    """The values of a run's secrets: of its containers, and as far as this process knows them."""
    of_containers = (value for one in containers for value in one.secrets)
    return {*known_secrets(cluster), *masked_of_addresses(cluster), *of_containers}


def _declared(cluster: Cluster) -> Iterable[object]:
    """Yields, for each place that can declare secrets, whether it does, also if a record has MASK
    there."""
    yield cluster.from_caller
    yield any(is_secret(mount) for mount in cluster.all_mounts)
    for task in cluster.tasks:
        yield task.env_file or any(_has_secret(*one) for one in task.environment)
        yield any(map(_has_mask, task.arguments))
    for one in cluster.sidecars:
        yield any(_has_secret(*pair) for pair in one.environment)
        yield any(map(_has_mask, (*(one.entrypoint or ()), *one.command)))


def _has_secret(name: str, value: str) -> bool:
    return looks_secret(name) or _has_mask(value)


def _has_mask(text: str) -> bool:
    """Whether a record's text has MASK for a secret: at its end, or before an address's host."""
    return text.endswith(MASK) or any(end in text for end in (f"{MASK}@", f"{MASK}:"))


def mask_verdict(verdict: Verdict, values: Iterable[str]) -> Verdict:
    """The verdict with MASK for these values in its texts."""
    mask = masker(values)
    return replace(
        verdict,
        message=mask(verdict.message),
        hint=mask(verdict.hint),
        decided=mask(verdict.decided),
    )


def mask_outcome(outcome: Outcome, values: Iterable[str]) -> Outcome:
    """The outcome with MASK for these values in all texts from tasks."""
    mask = masker(values)
    return replace(
        outcome,
        message=mask(outcome.message),
        decided=mask(outcome.decided),
        last_words=mask(outcome.last_words),
        cure=mask(outcome.cure),
        notes=[mask(note) for note in outcome.notes],
        metrics=masked_facts(outcome.metrics, mask),
        tasks=[replace(t, gpu_seen=masked_facts(t.gpu_seen, mask)) for t in outcome.tasks],
    )
