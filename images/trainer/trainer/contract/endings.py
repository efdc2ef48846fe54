"""How a task can end: its exit code, and the reason that its `end` event gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Exit codes of a task, besides a program's own.
EXIT_FAILED = 1
"""a failure without a code of its own"""
EXIT_USAGE = 2
"""invalid arguments, environment or data"""
EXIT_GPU_MISSING = 3
"""a task does not see the GPUs that it was promised"""
EXIT_CANNOT_SHAPE = 3
"""the bandwidth cannot be shaped"""
EXIT_OUTPUT = 4
"""the output cannot be written: its disk is full, or it was removed or made read-only; there may be no `end` event then"""  # noqa: E501
EXIT_TRAINING_FAILED = 5
"""a built-in program's training failed: not finite, a peer lost for good, no sound checkpoint, or a result out of its tolerance"""  # noqa: E501
EXIT_DEADLINE = 6
"""a deadline passed: start, job, the evaluator's grace, a task's silence, or no progress"""
EXIT_STDOUT_LOST = 120
"""Python's own: stdout could not take what was printed"""
EXIT_TERMINATED = 143
"""stopped by SIGTERM"""
NOT_FAILED = (0, EXIT_TERMINATED)
"""Exit codes of a task that has not failed: it ended well, or was stopped from outside."""

# Exit codes of the kit's commands for a run that has not succeeded.
KIT_HOST = 3
KIT_TRAINING_FAILED = 5
KIT_DEADLINE = 6
KIT_STOPPED = 7

FINISHED = "finished"
FAILED = "failed"
START_DEADLINE = "start-deadline"
JOB_DEADLINE = "job-deadline"
EVALUATOR_GRACE = "evaluator-grace"
SILENT = "silent"
STALL = "stall"
STOPPED = "stopped"
CUT_OFF = "cut-off"
LEADER_LOST = "leader-lost"
GPU_MISSING = "gpu-missing"
CANNOT_SHAPE = "cannot-shape"
DISK_FULL = "disk-full"
OUTPUT_LOST = "output-lost"


@dataclass(frozen=True)
class Reason:
    """What follows from a reason.

    `exit_code` is the task's, None if that is the program's own; `kit` the exit code of the command
    that watched a run which the task decides. `blameless`: no task is to blame.
    """

    meaning: str
    exit_code: int | None = None
    kit: int = KIT_TRAINING_FAILED
    blameless: bool = False


REASONS: Mapping[str, Reason] = {
    FINISHED: Reason("the program, or a server's job, ended well"),
    FAILED: Reason("the program failed, or could not be started"),
    START_DEADLINE: Reason("servers or peers were not there in time", EXIT_DEADLINE, KIT_DEADLINE),
    JOB_DEADLINE: Reason("the program ran for too long", EXIT_DEADLINE, KIT_DEADLINE),
    EVALUATOR_GRACE: Reason("the evaluator was not done in its grace", EXIT_DEADLINE, KIT_DEADLINE),
    SILENT: Reason(
        "a task stopped giving signs of life (it was frozen or cut off) and was not started again",
        EXIT_DEADLINE,
        KIT_DEADLINE,
    ),
    STALL: Reason("the job made no progress, for the second time", EXIT_DEADLINE, KIT_DEADLINE),
    STOPPED: Reason("SIGTERM or SIGINT", EXIT_TERMINATED, KIT_STOPPED, blameless=True),
    CUT_OFF: Reason("a worker's program was still running when its grace was over: no failure", 0),
    LEADER_LOST: Reason("the leader was gone for too long", 0),
    GPU_MISSING: Reason(
        "a task does not see the GPUs that it was promised: no retry", EXIT_GPU_MISSING, KIT_HOST
    ),
    CANNOT_SHAPE: Reason("the bandwidth cannot be shaped: no retry", EXIT_CANNOT_SHAPE, KIT_HOST),
    DISK_FULL: Reason(
        "the disk of the output is full: no retry", EXIT_OUTPUT, KIT_HOST, blameless=True
    ),
    OUTPUT_LOST: Reason(
        "the output directory was removed, or cannot be written any more: no retry",
        EXIT_OUTPUT,
        KIT_HOST,
        blameless=True,
    ),
}


def kit_exit_code(reason: str) -> int:
    """The kit's exit code for a run that a task has ended with this reason."""
    return REASONS[reason].kit if reason in REASONS else KIT_TRAINING_FAILED
