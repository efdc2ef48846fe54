"""The values that all steps of a run share, its stopwatch, and its observers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

from cluster_kit.contract.events import Epoch, Step
from cluster_kit.host import Clock, Host
from cluster_kit.manifest.command_line import Caller
from cluster_kit.observe.logs import Followed
from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Container, Engine
from cluster_kit.platforms.platform import Platform
from cluster_kit.resolved import Cluster
from cluster_kit.show.view import View
from cluster_kit.workspace import RunDirectory, Workspace


class Stopwatch:
    """Measures seconds by the name of a step; a repeated step is summed.

    Args:
        clock: the clock that it reads.
        timings: seconds of steps that are already done.
        ago_s: how long ago the first step began.
        joined_at: the Unix time at which this process began to watch a run of another one.
    """

    def __init__(
        self,
        clock: Clock,
        timings: Mapping[str, float] = MappingProxyType({}),
        ago_s: float = 0.0,
        joined_at: float | None = None,
    ) -> None:
        self._clock = clock
        self._joined_at = joined_at
        self.timings = dict(timings)
        self.began = clock.monotonic() - ago_s

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time of the `with` block to this step."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + self._clock.monotonic() - began

    @property
    def since_start_s(self) -> float:
        """Seconds since the steps before the start of the containers were done."""
        return self._clock.monotonic() - self.began - sum(self.timings.values())

    def read(self, seen: RunState, since: float) -> dict[str, float]:
        """All timings in seconds, to the millisecond, with the training's and the total.

        The time between the end of all tasks and the command that joined the run does not count.
        """
        timings = {**self.timings, **training_times(seen, since)}
        timings["total"] = self._clock.monotonic() - self.began - self._unwatched_s(seen)
        return {name: round(value, 3) for name, value in timings.items()}

    def _unwatched_s(self, seen: RunState) -> float:
        """Seconds for which all tasks had ended before this process joined; 0 if it did not."""
        ends = [_last_end(seen, task) for task in seen.tasks]
        known = [end for end in ends if end is not None]
        if self._joined_at is None or not known or len(known) < len(ends):
            return 0.0
        return max(0.0, self._joined_at - max(known))


def training_times(seen: RunState, since: float) -> dict[str, float]:
    """Seconds from `since` to the leader's first step, or to the first function of a coordinator's
    workers, and from there to the leader's end, if known.

    No step was before `since`, whatever time a program writes.
    """
    leader = seen.leader
    steps = [
        e.time
        for e in seen.entries
        if isinstance(e.event, Step | Epoch)
        and (e.task == leader or (isinstance(e.event, Step) and e.event.step is None))
    ]
    if not steps:
        return {}
    end = _last_end(seen, leader)
    first = max(steps[0], since)
    times = {"first_step": first - since}
    return times if end is None else {**times, "train": end - first}


def _last_end(seen: RunState, task: str) -> float | None:
    """The end of a task's last life; None if it is not known, as of a task that was started again
    and then removed."""
    lives = seen.lives_of(task)
    return lives[-1].ended if lives else None


class Superseded(Exception):
    """Ends the run, since a run of the changed files replaces it."""


Keep = bool | Literal["failed"]
"""Whether the containers of a run stay after its end; "failed": if it fails."""


class Reached(Exception):
    """Ends the watching, but not the run: it has reached the milestone that the caller waits
    for."""


class Observer(Protocol):
    """Receives a run's plan, and each of its states."""

    def planned(self, cluster: Cluster) -> None:
        """Called before anything is started; can raise KitError to prevent the start."""
        ...

    def ready(self, engine: Engine, cluster: Cluster) -> None:
        """Called when the image exists and nothing is started; may raise KitError to prevent the
        start.
        """
        ...

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        """Called after each observation of the state. Can raise Superseded or Reached only."""
        ...


class Nobody:
    """The observer of a usual run."""

    def planned(self, cluster: Cluster) -> None:
        pass

    def ready(self, engine: Engine, cluster: Cluster) -> None:
        pass

    def observe(self, engine: Engine, cluster: Cluster, seen: RunState) -> None:
        pass


NOBODY = Nobody()


@dataclass(frozen=True)
class Run:
    """One run of a cluster: its plan, its host, its view, its engine and platform, its directory.

    The started cluster has another subnet if the subnet of `cluster` has been taken meanwhile.
    """

    host: Host
    cluster: Cluster
    workspace: Workspace
    view: View
    engine: Engine
    platform: Platform
    timings: Stopwatch
    directory: RunDirectory
    since: float
    """Unix time; older events and progress entries belong to earlier runs."""
    id: str
    """The run's id; its containers have it as the label `labels.RUN`."""
    sizes: Mapping[str, int]
    """The number of bytes of each progress file that belong to an earlier run in this directory."""
    keep: Keep
    """Whether the containers stay after the end."""
    followed: Followed
    """The followed logs of tasks, whose lines are shown."""
    observer: Observer = NOBODY
    caller: Caller = Caller.SHELL
    """How hints write settings for the next run: as in the file or as options."""
    is_new: bool = False
    """Whether its directory was made for it, and holds nothing of an earlier run's."""

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.cluster.name

    @property
    def resumed(self) -> bool:
        """Whether it continues an earlier run, which has left progress files in its directory."""
        return bool(self.sizes)

    def containers(self) -> list[Container]:
        """This run's containers, in task order; raises EngineError."""
        return self.engine.containers(self.name, self.id)

    def sidecars(self) -> list[Container]:
        """The containers of its sidecars, if it has any; raises EngineError."""
        return self.engine.sidecars(self.name, self.id) if self.cluster.sidecars else []
