"""What a person asks of a run while it is watched: told when it is asked, and when it is done."""

from __future__ import annotations

from collections.abc import Callable

from cluster_kit.observe import asked, on_request
from cluster_kit.observe.asked import Asked
from cluster_kit.observe.state import RunState


class Requests:
    """Looks at one run's state for what is new.

    Args:
        tell: is called with a sentence.
        follow: is called when tasks run again: their logs are to be followed once more.
    """

    def __init__(self, tell: Callable[[str], None], follow: Callable[[], None]) -> None:
        self._tell = tell
        self._follow = follow
        self._told: set[Asked] = set()
        self._pending: Asked | None = None

    def look(self, seen: RunState) -> None:
        """Tell what was asked since the last look, and that a stopped cluster goes on."""
        for one in seen.requests:
            if one not in self._told and one.what in asked.ENDS:
                self._tell(_beginning(one, seen))
            self._told.add(one)
        pending, before = on_request.pending(seen), self._pending
        self._pending = pending
        if (
            before is not None
            and pending is None
            and seen.started.get(seen.leader, 0) > before.time
        ):
            if before.what == asked.STOP:
                self._tell("the cluster was started again: the run is watched on")
            self._follow()


def _beginning(one: Asked, seen: RunState) -> str:
    if one.what == asked.STOP:
        return (
            f"stopped by `cluster-kit stop` at {one.at}: the run is not over, `cluster-kit start` "
            "goes on with it"
        )
    return on_request.words(one, seen)
