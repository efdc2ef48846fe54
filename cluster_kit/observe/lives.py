"""The lives of a task's container, made from the engine's events. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cluster_kit.platforms.engine import Action, Event


@dataclass(frozen=True)
class Life:
    """One life of a task's container, from its start to its end. Times are Unix seconds.

    Args:
        began: its start; None if no container was started, as on a node that refuses to.
        ended: its end; None if it runs.
        exit_code: None also if it is not known.
        refusal: why no container ran.
        ooms: when a process was killed because the memory limit was reached.
        kills: when a signal was sent to it from outside.
        pauses: when it was frozen.
        drained: its node if that node is drained, else "".
        lost: when its node was found to be down.
        lost_node: that node.
        homeless: why no node accepts the task since its end; "" if a node does.
        removed: whether the container was removed.
    """

    began: float | None
    ended: float | None = None
    exit_code: int | None = None
    refusal: str = ""
    ooms: tuple[float, ...] = ()
    kills: tuple[float, ...] = ()
    pauses: tuple[float, ...] = ()
    drained: str = ""
    lost: float | None = None
    lost_node: str = ""
    homeless: str = ""
    removed: bool = False

    @property
    def failed_at(self) -> float | None:
        """The time at which it failed; None if it runs.

        This can be before its end: the kernel first reclaims memory, and other tasks can notice the
        failure.
        """
        if self.ended is None:
            return None
        return min((time for time in self.ooms if time <= self.ended), default=self.ended)


Lives = tuple[Life, ...]


def after(lives: Lives, event: Event) -> Lives:
    """A task's lives after one more event of its container.

    An end without a start is a life of its own: no container ran.
    """
    if event.action == Action.START:
        return (*lives, Life(event.time))
    if not lives or (event.action == Action.DIE and lives[-1].ended is not None):
        new = _changed(Life(None), event)
        return lives if new is None else (*lives, new)
    changed = _changed(lives[-1], event)
    return lives if changed is None else (*lives[:-1], changed)


def _changed(life: Life, event: Event) -> Life | None:
    """The life after an event other than a start; None if the event does not change it."""
    match event.action:
        case Action.DIE:
            return replace(life, ended=event.time, exit_code=event.exit_code, refusal=event.said)
        case Action.OOM:
            return replace(life, ooms=(*life.ooms, event.time))
        case Action.KILL:
            kills = (*life.kills, event.time)
            return replace(life, kills=kills, drained=event.said or life.drained)
        case Action.PAUSE:
            return replace(life, pauses=(*life.pauses, event.time))
        case Action.LOST:
            return replace(life, lost=event.time, lost_node=event.said)
        case Action.HOMELESS:
            return replace(life, homeless=event.said)
        case Action.DESTROY:
            return replace(life, removed=True)
    return None


def lives_of(events: Iterable[Event]) -> dict[str, Lives]:
    """Each task's lives, by its name, from the events of all tasks in the engine's order."""
    lives: dict[str, Lives] = {}
    for event in events:
        lives[event.task] = after(lives.get(event.task, ()), event)
    return lives


def starts(lives: Iterable[Life]) -> list[float]:
    """The times at which a task's container started."""
    return [life.began for life in lives if life.began is not None]


def ends(lives: Iterable[Life]) -> list[float]:
    """The times at which a task's container ended."""
    return [life.ended for life in lives if life.ended is not None]


def restarts(lives: Iterable[Life]) -> int:
    """How often a task's container was restarted."""
    return max(0, len(starts(lives)) - 1)


def since_start(lives: Lives) -> Lives:
    """The newest life with a start, and all after it; all lives if none has a start."""
    began = [place for place, life in enumerate(lives) if life.began is not None]
    return lives[began[-1] :] if began else lives


def ran(lives: Sequence[Life], until: float) -> Iterator[tuple[float, float, Life]]:
    """Yields begin, end and the life, for each life with a start.

    Args:
        until: the end of a life that continues. One without an end event lasts until the next life.
    """
    began = [(life.began, life) for life in lives if life.began is not None]
    for (begin, life), (following, _) in zip(began, [*began[1:], (until, None)], strict=False):
        yield begin, following if life.ended is None else life.ended, life


def by_task(lives: Mapping[str, Lives]) -> Iterator[tuple[str, Life]]:
    """Yields every task's lives with its name."""
    for task, lives_of_task in lives.items():
        for life in lives_of_task:
            yield task, life
