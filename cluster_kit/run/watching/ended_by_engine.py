"""An engine that is started anew without live-restore ends the containers that it finds."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_kit.errors import EngineError
from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Container, Event

STOPPED = "stopped"
"""The reason of a supervisor that was told to stop."""
STOPS_WITHIN_S = 15.0
"""An engine that is told to end stops its containers first, each within 10 s."""


class EndedByEngine(EngineError):
    """There is nothing to wait for: the leader is gone."""


def refuse_if_taken_away(containers: Sequence[Container]) -> None:
    """Raise EndedByEngine if the leader was evicted, or its node is gone."""
    for one in containers:
        if one.leader and one.taken_away:
            raise EndedByEngine(
                f"Kubernetes has ended {one.name} in the middle of the run: {one.taken_away}",
                "run it again with `--resume`: it goes on from its last checkpoint. A pod with "
                "`memory` and `cpus` of its own is among the last that a node evicts",
            )


def refuse_if_ended_by_engine(
    seen: RunState, late: Sequence[Event], lost_at: float, containers: Sequence[Container]
) -> None:
    """Raise EndedByEngine if an engine that was away has ended the leader.

    A leader that has ended by itself meanwhile has said so in its progress file, and one that has
    crashed has left others behind.

    Args:
        late: events that the engine did not tell: they happened while it was away.
        lost_at: the Unix time at which the engine was found to be away, infinity if it never was.
        containers: the cluster's containers by now.
    """
    leader = seen.leader
    ends = [event for event in seen.events if (event.task, event.action) == (leader, "die")]
    if not any(event in late or event.time > lost_at - STOPS_WITHIN_S for event in ends):
        return
    end = seen.end_entry(leader)
    others = [c for c in containers if c.name not in (leader, *seen.evaluators)]
    stopped = end is not None and end.fields.get("reason") == STOPPED
    fell = end is None and bool(others) and all(c.state == "exited" for c in others)
    if seen.tasks[leader].exit_code == 0 or not (stopped or fell):
        return
    raise EndedByEngine(
        f"the Docker engine stopped in the middle of the run, and has ended {leader} with it",
        "run it again with `--resume`: it goes on from its last checkpoint. An engine with "
        "`live-restore` lets containers live on",
    )
