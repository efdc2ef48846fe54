"""Recovers a watched run: restarts silent tasks, and waits for an unreachable engine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from types import TracebackType

from cluster_kit.contract import heartbeat
from cluster_kit.contract.times import BEAT_S
from cluster_kit.errors import EngineError
from cluster_kit.host import Clock
from cluster_kit.observe import heartbeats
from cluster_kit.observe.heartbeats import SignOfLife, Silence
from cluster_kit.observe.listener import Timeline
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.docker.docker_connection import START_IT
from cluster_kit.platforms.engine import Container, reaching
from cluster_kit.resolved import Cluster
from cluster_kit.run.run import Run

LEADER_FIRST_S = 3 * BEAT_S
"""Seconds by which the host reports a paused task later than a leader that hears nothing of it."""


class Recovery:
    """Checks the heartbeats of one run, and restarts silent tasks."""

    def __init__(self, run: Run, cluster: Cluster, timeline: Timeline) -> None:
        self._engine = run.engine
        self._cluster = cluster
        self._run = run
        self._timeline = timeline
        late = run.platform.output_is_late
        watched = () if late else (cluster.leader, *cluster.evaluators)
        self._signs = {task.name: SignOfLife(run.directory.output, task.name) for task in watched}
        self._servers = {task.name for task in cluster.tasks if task.serves}
        self._paused_s: dict[str, float] = {}
        self._looked_at = 0.0
        self._done: list[Silence] = []
        self._leader_killed_at = 0.0

    def look(self, seen: RunState) -> RunState:
        """Restart silent tasks; returns the state after that, which is unchanged if none was
        silent.

        Raises:
            EngineError: the engine refuses, or does not answer.
        """
        limit = self._cluster.deadlines.silent
        if not limit:
            return seen
        silent_s: dict[str, float] = {}
        for name, seconds in self._paused(seen).items():
            if heartbeat.is_silent(seconds - LEADER_FIRST_S, limit):
                silent_s[name] = seconds
        for name, sign in self._signs.items():
            started = seen.started_at(name) if seen.starts(name) else float("inf")
            seconds = sign.look(self._run.host.clock.monotonic(), started)
            if heartbeat.is_silent(seconds, limit) and runs(seen, name):
                silent_s[name] = seconds
        known = heartbeats.current(seen)
        for name, seconds in silent_s.items():
            if name not in known:
                seen = seen.with_entry(heartbeats.entry(name, self._timeline.now(), seconds))
        reported = {
            name: silence
            for name, silence in heartbeats.unanswered(seen).items()
            if name in seen.tasks and runs(seen, name) and self._is_new(silence)
        }
        if not reported:
            return seen
        containers = self._run.containers()
        # A task that ended because it is cut off still is, after the engine has started it again.
        lost = {container.name for container in containers if not container.attached}
        lost |= heartbeats.current(seen).keys()
        names = [name for name in reported if name in lost]
        chosen = to_start_again(seen, names, containers, self._servers) if names else []
        for container in chosen:
            if container.name in reported:
                self._run.view.note(str(reported[container.name]))
            self._start_again(container, seen)
        self._done += reported.values()
        if any(container.name == seen.leader for container in chosen):
            self._leader_killed_at = self._timeline.now()
        return seen

    def _paused(self, seen: RunState) -> dict[str, float]:
        """The seconds for which tasks have been paused without a break: a leader that was paused
        with them, or waits for its servers after a restart, reports no silence of theirs."""
        moment = self._run.host.clock.monotonic()
        passed, self._looked_at = heartbeat.passed(self._looked_at, moment), moment
        paused = [name for name, task in seen.tasks.items() if task.state is State.PAUSED]
        self._paused_s = {name: self._paused_s.get(name, -passed) + passed for name in paused}
        return self._paused_s

    def _is_new(self, silence: Silence) -> bool:
        """Whether a silence is new; reports from before the leader was killed do not count."""
        return silence not in self._done and silence.time > self._leader_killed_at

    def _start_again(self, container: Container, seen: RunState) -> None:
        """Restart a task at most `retries` times; a leader that was killed is started by the
        watch."""
        leads = container.name == seen.leader
        if not leads and seen.tasks[container.name].restarts >= self._cluster.retries:
            return
        self._engine.kill(container.id)
        if not container.attached:
            task = next(t for t in self._cluster.tasks if t.name == container.name)
            engine = reaching(self._engine)
            engine.attach(container.id, self._cluster.name, task.name, str(task.ip))
        if not leads:
            self._engine.start_again(container.id)


def runs(seen: RunState, task: str) -> bool:
    """Whether the task's container runs, frozen or not."""
    return seen.tasks[task].state not in (State.CREATED, State.RESTARTING, State.ENDED)


def to_start_again(
    seen: RunState, silent: Sequence[str], containers: Sequence[Container], servers: Set[str]
) -> list[Container]:
    """The containers to start again, in this order, if these tasks are silent. Pure.

    If the leader receives no answer from any task, it may itself be cut off: so it is if it has no
    network, or if several other tasks are silent for no other reason. Then servers are restarted,
    too: their connections to the leader are dead, and they would notice that one by one. The leader
    comes first: otherwise it would end the job meanwhile, since it expects no recovery.
    """
    by_name = {container.name: container for container in containers}
    leader, other_silent = by_name.get(seen.leader), [c for c in containers if c.name in silent]
    if leader in other_silent:
        return [leader]
    if leader is None or not runs(seen, seen.leader):
        return other_silent
    expected = {name for name in seen.tasks if name != seen.leader and runs(seen, name)}
    unexplained = [c for c in other_silent if c.attached and c.state != State.PAUSED]
    alone = len(unexplained) > 1 and {c.name for c in unexplained} == expected
    if leader.attached and not alone:
        return other_silent
    return [leader, *(c for c in containers if c.name in servers and runs(seen, c.name))]


DOCKER = "the Docker engine"


class EndedByEngine(EngineError):
    """The engine has ended the leader, so waiting is useless."""


class Absence:
    """Suppresses EngineErrors of its `with` blocks while the engine is unreachable for a limited
    time.

    A block without an error ends the absence. Containers of a crashed engine continue without it;
    one that is shut down usually ends them.

    Args:
        clock: measures the absence.
        limit_s: for how long the engine may be away, in seconds.
        tell: called with a sentence when the engine is lost, and when it answers again.
        back: called when it answers again.
        title: the engine's name.
    """

    def __init__(
        self,
        clock: Clock,
        limit_s: float,
        tell: Callable[[str], None],
        back: Callable[[], None],
        title: str = DOCKER,
    ) -> None:
        self._clock = clock
        self._title = title
        self._limit_s = limit_s
        self._tell = tell
        self._back = back
        self._away_since: float | None = None
        self._before_s = 0.0
        self.lost_at = math.inf
        """Unix time at which the engine was last found unreachable."""

    @property
    def lasts(self) -> bool:
        """Whether the engine is unreachable now."""
        return self._away_since is not None

    @property
    def total_s(self) -> float:
        """The total seconds of all absences so far."""
        now = 0.0 if self._away_since is None else self._clock.monotonic() - self._away_since
        return self._before_s + now

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, EngineError) and not isinstance(error, EndedByEngine):
            self._bear(error)
            return True
        if error is None and self._away_since is not None:
            self._end()
        return False

    def _bear(self, error: EngineError) -> None:
        """Note that the engine is unreachable; raises EngineError if it has been so for too
        long."""
        if self._away_since is None:
            self._away_since, self.lost_at = self._clock.monotonic(), self._clock.time()
            self._tell(
                f"{self._title} does not answer: it is waited for, up to {self._limit_s:g} s"
            )
        if self._clock.monotonic() - self._away_since >= self._limit_s:
            raise _given_up(error, self._limit_s, self._title) from None

    def _end(self) -> None:
        away_s = self.total_s - self._before_s
        self._before_s, self._away_since = self.total_s, None
        self._tell(f"{self._title} answers again, after {away_s:.0f} s: the run is watched on")
        self._back()


def _given_up(error: EngineError, limit_s: float, title: str) -> EngineError:
    return EngineError(
        f"{title} stopped in the middle of the run, and did not come back within "
        f"{limit_s:g} s: {error.message}",
        f"{START_IT if title == DOCKER else error.hint}; `cluster-kit attach NAME` then "
        "continues with the containers that are still up, and `cluster-kit down NAME` removes it",
    )
