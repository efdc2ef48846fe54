"""Simulated traces."""

from __future__ import annotations

from trainer.agent.profiling.traces import Event, Thread, Trace

MS = 1_000_000.0
TO_PS = "/job:worker/replica:0/task:1/device:CPU:0;10f8;/job:ps/replica:0/task:0/device:CPU:0;e;0:0"


def event(name: str, begin_ms: float, ms: float, /, **stats: object) -> Event:
    return Event(name, begin_ms * MS, ms * MS, stats)


def trace(*events: Event, task: str = "worker-1", ms: float = 100, thread: str = "tf_Compute"):
    return Trace(task, 5_000_000_000, ms * MS, (Thread(thread, events),))


def awaited(name: str, kind: str, begin_ms: float, ms: float, key: int) -> list[Event]:
    """Returns an op that starts and ends later, without a thread in between."""
    return [
        event("ExecutorState::ProcessAsync::Start", begin_ms, 0.1,
              name=name, kernel_type=kind, _p=key),
        event("ExecutorState::ProcessAsync::Done", begin_ms + ms, 0.1,
              name=name, kernel_type=kind, _c=key),
    ]  # fmt: skip
