"""A reason that keeps a pod from starting is reported only if it lasts, each kind for its own
time."""

from __future__ import annotations

import pytest

from cluster_kit.errors import EngineError
from cluster_kit.platforms.kubernetes import kubernetes_start

ROOM, PULL = "Unschedulable: no node", "ErrImagePull: try again"


class Queue:
    """An engine of Kubernetes as far as the start uses it; no queue holds anything back."""

    def is_queued(self, cluster: str, run: str) -> bool:
        return False


def started_in(reasons: list[str], monkeypatch: pytest.MonkeyPatch) -> float:
    """Returns the seconds until a task has started that has these reasons, second by second."""
    now, left = [100.0], [*reasons]
    monkeypatch.setattr(kubernetes_start.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(kubernetes_start.time, "sleep", lambda s: now.__setitem__(0, now[0] + s))

    def not_started(*_: object) -> tuple[list[str], dict[str, str]]:
        if not left:
            return [], {}
        why = left.pop(0)
        return ["ps-0"], {"ps-0": why} if why else {}

    monkeypatch.setattr(kubernetes_start, "not_started", not_started)
    kubernetes_start.wait_for_start(Queue(), "demo", "1")  # type: ignore[arg-type]
    return now[0] - 100.0


def test_a_late_node_and_one_failed_pull_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert started_in([ROOM] * 120 + [PULL] * 3, monkeypatch) == 123


@pytest.mark.parametrize("message", [ROOM, PULL, "FailedMount: no such volume"])
def test_a_lasting_reason_is_reported(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineError, match=message):
        started_in([message] * 700, monkeypatch)
