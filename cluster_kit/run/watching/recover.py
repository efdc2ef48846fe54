"""Starts silent tasks again: a frozen container is killed, one that is cut off gets its network."""

from __future__ import annotations

from collections.abc import Sequence, Set

from cluster_kit.observe import silences
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.silences import SignOfLife
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.observe.timeline import Timeline
from cluster_kit.platforms.engine import Container
from cluster_kit.resolved import Cluster
from cluster_kit.run.context import Launch


class Recovery:
    """Looks at one run's signs of life, and acts on what is missing."""

    def __init__(self, run: Launch, cluster: Cluster, timeline: Timeline) -> None:
        self._engine = run.engine
        self._cluster = cluster
        self._run = run
        self._timeline = timeline
        late = run.platform.output_is_late
        watched = () if late else (cluster.leader, *cluster.evaluators)
        self._signs = {task.name: SignOfLife(run.directory.output, task.name) for task in watched}
        self._servers = {task.name for task in cluster.tasks if task.serves}
        self._done: list[Entry] = []
        self._leader_killed_at = 0.0

    def look(self, seen: RunState) -> RunState:
        """The state after what was done about silent tasks; the same if there was nothing to do.

        Raises:
            EngineError: the engine refuses, or does not answer.
        """
        limit = self._cluster.deadlines.silent
        if not limit:
            return seen
        for name, sign in self._signs.items():
            seconds = sign.look(
                self._run.host.clock.monotonic(), seen.started.get(name, float("inf"))
            )
            if seconds > limit and runs(seen, name) and name not in silences.current(seen):
                seen = seen.with_entry(silences.entry(name, self._timeline.now(), seconds))
        told = {
            name: entry
            for name, entry in silences.current(seen).items()
            if name in seen.tasks and runs(seen, name) and self._is_new(entry)
        }
        if not told:
            return seen
        containers = self._run.containers()
        chosen = to_start_again(seen, list(told), containers, self._servers)
        for container in chosen:
            self._start_again(container, seen)
        self._done += told.values()
        if any(container.name == seen.leader for container in chosen):
            self._leader_killed_at = self._timeline.now()
        return seen

    def _is_new(self, entry: Entry) -> bool:
        """What a leader said before it was killed means nothing any more."""
        return entry not in self._done and entry.time > self._leader_killed_at

    def _start_again(self, container: Container, seen: RunState) -> None:
        """Within the bound of `retries`; a leader that was killed is the watch's to start."""
        leads = container.name == seen.leader
        if not leads and seen.tasks[container.name].restarts >= self._cluster.retries:
            return
        self._engine.kill(container.id)
        if not container.attached:
            task = next(t for t in self._cluster.tasks if t.name == container.name)
            self._engine.attach(container.id, self._cluster.name, task.name, str(task.ip))
        if not leads:
            self._engine.start_again(container.id)


def runs(seen: RunState, task: str) -> bool:
    """Whether the task's container runs, frozen or not."""
    return seen.tasks[task].state not in (State.CREATED, State.RESTARTING, State.ENDED)


def to_start_again(
    seen: RunState, silent: Sequence[str], containers: Sequence[Container], servers: Set[str]
) -> list[Container]:
    """The containers to start again, in this order, if these tasks are silent. Pure.

    A leader that hears of nobody may be the one that is cut off itself: it is, if it has no
    network, or if there are several others and no other reason for their silence. Then servers are
    started again, too: they hold connections to it that are dead, and would find out one by one.
    It comes first: it would end the job meanwhile, in the belief that nobody helps the others.
    """
    found = {container.name: container for container in containers}
    leader, others = found.get(seen.leader), [c for c in containers if c.name in silent]
    if leader in others:
        return [leader]
    if leader is None or not runs(seen, seen.leader):
        return others
    expected = {name for name in seen.tasks if name != seen.leader and runs(seen, name)}
    unexplained = [c for c in others if c.attached and c.state != State.PAUSED]
    alone = len(unexplained) > 1 and {c.name for c in unexplained} == expected
    if leader.attached and not alone:
        return others
    return [leader, *(c for c in containers if c.name in servers and runs(seen, c.name))]
