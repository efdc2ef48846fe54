"""Sidecars that have crashed: noted, and blamed if the job needs them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cluster_kit.errors import TrainingFailed
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import SIDECAR, Container
from cluster_kit.resolved import Cluster
from cluster_kit.run.judging.endings import Ending
from cluster_kit.run.judging.verdict import STOP_CODES, Reason, Verdict


def crashed(containers: Iterable[Container]) -> list[Container]:
    """Those sidecars that have ended by themselves, and not well."""
    return [
        one
        for one in containers
        if one.role == SIDECAR
        and State.of_engine(one.state) is State.ENDED
        and (one.oom or one.exit_code not in STOP_CODES)
    ]


def words(one: Container) -> str:
    """What is told of one that has crashed."""
    why = ": out of memory" if one.oom else ""
    return f"the sidecar {one.name} has ended with exit code {one.exit_code}{why}"


def notes_of(containers: Iterable[Container], blame: str) -> list[str]:
    """A note for each that crashed before the job's end, and is not to blame for that."""
    return [
        f"{words(one)}; its log is logs/{one.name}.log"
        for one in crashed(containers)
        if one.name != blame
    ]


def blamed(
    cluster: Cluster, verdict: Verdict, ending: Ending, containers: Sequence[Container]
) -> Verdict:
    """The verdict; of a job that failed after a sidecar which it needs, the one on that sidecar.

    Args:
        containers: of tasks and sidecars, before they were stopped.
    """
    if verdict.success or ending not in ("ended", "sidecar"):
        return verdict
    required = {one.name for one in cluster.sidecars if one.required}
    ends = [c.finished for c in containers if c.leader and c.exit_code is not None]
    ended = min(ends, default=float("inf"))
    down = [c for c in crashed(containers) if c.name in required and c.finished <= ended]
    if not down:
        return verdict
    first = min(down, key=lambda c: c.finished)
    message = f"{words(first)}, and the job needs it (`required = true`)"
    return Verdict(False, TrainingFailed.exit_code, Reason.FAILED, first.name, message)
