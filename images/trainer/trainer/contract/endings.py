"""How a task can end: its exit code, and the reason that its `end` event gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Exit codes of a task, besides a program's own.
EXIT_FAILED = 1
"""any other failure"""
EXIT_USAGE = 2
"""invalid arguments, environment or data"""
EXIT_GPU_MISSING = 3
"""a task does not see the GPUs that it was promised"""
EXIT_CANNOT_SHAPE = 3
"""the bandwidth cannot be shaped"""
EXIT_OUTPUT = 4
"""the output cannot be written: its disk is full, or it was removed or made read-only; the `end` event can be missing then"""  # noqa: E501
EXIT_TRAINING_FAILED = 5
"""a built-in program's training failed: the loss is not finite, a peer is lost, no checkpoint is intact, or the result misses its tolerance"""  # noqa: E501
EXIT_DEADLINE = 6
"""a deadline passed: start, job, the evaluator's grace, a task's silence, or no progress"""
EXIT_STDOUT_LOST = 120
"""Python's code for a failed write to stdout"""
EXIT_TERMINATED = 143
"""stopped by SIGTERM"""
TMP_FULL = "/tmp is full"
"""In the message of a program that failed when its /tmp, which is in memory, had no room left."""
NOT_FAILED = (0, EXIT_TERMINATED)
"""Exit codes of a task that has not failed: it succeeded, or was stopped by a user."""

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
    """The exit codes that belong to a reason.

    `exit_code` is the task's, None for the program's exit code; `kit` is the exit code of the
    command that watched the run, if the task decides the run. `blameless`: no task is to blame.
    """

    meaning: str
    exit_code: int | None = None
    kit: int = KIT_TRAINING_FAILED
    blameless: bool = False


REASONS: Mapping[str, Reason] = {
    FINISHED: Reason("the program, or the job of a server, succeeded"),
    FAILED: Reason("the program failed, or could not be started"),
    START_DEADLINE: Reason("servers or peers did not answer in time", EXIT_DEADLINE, KIT_DEADLINE),
    JOB_DEADLINE: Reason("the program ran for too long", EXIT_DEADLINE, KIT_DEADLINE),
    EVALUATOR_GRACE: Reason(
        "the evaluator did not finish within its grace time", EXIT_DEADLINE, KIT_DEADLINE
    ),
    SILENT: Reason(
        "a task sent no heartbeats (it was frozen or cut off) and was not restarted",
        EXIT_DEADLINE,
        KIT_DEADLINE,
    ),
    STALL: Reason("the job made no progress, for the second time", EXIT_DEADLINE, KIT_DEADLINE),
    STOPPED: Reason("SIGTERM or SIGINT", EXIT_TERMINATED, KIT_STOPPED, blameless=True),
    CUT_OFF: Reason(
        "a worker's program was still running after its grace time; this is not a failure", 0
    ),
    LEADER_LOST: Reason("the leader did not answer for too long", 0),
    GPU_MISSING: Reason(
        "a task does not see the GPUs that it was promised; there is no retry",
        EXIT_GPU_MISSING,
        KIT_HOST,
    ),
    CANNOT_SHAPE: Reason(
        "the bandwidth cannot be limited; there is no retry", EXIT_CANNOT_SHAPE, KIT_HOST
    ),
    DISK_FULL: Reason(
        "the disk of the output is full; there is no retry", EXIT_OUTPUT, KIT_HOST, blameless=True
    ),
    OUTPUT_LOST: Reason(
        "the output directory was removed or became read-only; there is no retry",
        EXIT_OUTPUT,
        KIT_HOST,
        blameless=True,
    ),
}


def kit_exit_code(reason: str) -> int:
    """Return the kit's exit code for a run that a task has ended with this reason."""
    return REASONS[reason].kit if reason in REASONS else KIT_TRAINING_FAILED
