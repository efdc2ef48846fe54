"""What a task does in one life of its container, as a list of steps; and the default for each
role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Step:
    """An action of a task, this many seconds after its start.

    `event` is written into its progress file with `fields`, `line` into its log, to `stderr` or
    stdout; `code` ends its process; `oom` is reported by the kernel, and the engine passes it on.
    """

    at: float
    event: str = ""
    fields: Mapping[str, Any] | None = None
    line: str = ""
    code: int | None = None
    oom: bool = False
    stderr: bool = False


def says(at: float, event: str, **fields: Any) -> Step:
    return Step(at, event, fields)


def prints(at: float, line: str, *, stderr: bool = False) -> Step:
    return Step(at, line=line, stderr=stderr)


def dies(at: float, code: int = 137) -> Step:
    """The task ends without an end message."""
    return Step(at, code=code)


def runs_out_of_memory(at: float) -> Step:
    return Step(at, oom=True, code=137)


def ends(
    at: float,
    code: int,
    reason: str,
    message: str = "",
    *tasks: str,
    after_job: bool = False,
) -> Step:
    """The task ends with its supervisor's end message."""
    fields = {"exit_code": code, "reason": reason, "message": message, "tasks": list(tasks)}
    fields |= {"after_job": after_job, "rx_bytes": 1000, "tx_bytes": 2000}
    return Step(at, "end", fields, code=code)


@dataclass(frozen=True)
class Life:
    """One life of a task's container. It ends `after_job_s` after the leader's final end, with that
    end message, unless it is `deaf`. If told to stop it reports this and ends, unless it is
    `stubborn`. If it is too `young` to report anything, it ends without a message."""

    steps: Sequence[Step]
    deaf: bool = False
    stubborn: bool = False
    young: bool = False
    after_job_s: float = 0.1
    last: Step = ends(0.0, 0, "finished")  # noqa: RUF009 - a frozen value


LEADS = Life(
    (
        says(0.1, "start", attempt=1),
        says(0.4, "ready"),
        prints(0.5, "100 training images"),
        says(1.0, "step", step=1, steps_per_s=10.0),
        says(2.0, "epoch", step=20, loss=0.5, accuracy=0.75),
        says(2.9, "metrics", test_accuracy=0.9, loss=0.05),
        ends(3.0, 0, "finished", "the program finished"),
    )
)
SERVES = Life((says(0.2, "ready"), prints(0.2, "TensorFlow server ready")))
SCORES = Life(
    (
        says(0.1, "start", attempt=1),
        says(2.4, "evaluation", checkpoint="ckpt-1", step=20, accuracy=0.8),
    ),
    after_job_s=0.6,
)
TRAINS = Life((says(0.1, "start", attempt=1), says(1.1, "step", step=1)))

BESIDE = Life((prints(0.1, "listening"),))
"""A sidecar, which runs until it is stopped."""


def usual(task: str, leader: str, command: Sequence[str]) -> Life:
    """Returns how a task of this role behaves if a test does not say otherwise."""
    if task == leader:
        return LEADS
    if command[0] == "serve":
        return SERVES
    return SCORES if task.startswith("evaluator") else TRAINS
