"""Errors that a person can repair, and every exit code of the image.

A message says what happened with the value, the rule, and the cure; the first of several lines says
what it is about. A task's exit code is the program's own if the program ended by itself.
"""

from __future__ import annotations

EXIT_FAILED = 1
"""A failure without a code of its own."""
EXIT_USAGE = 2
"""Invalid arguments, environment or data: the same as argparse's."""
EXIT_GPU_MISSING = 3
"""A task does not see the GPUs that it was promised."""
EXIT_CANNOT_SHAPE = 3
"""The kernel or the container's capabilities do not allow the bandwidth that was asked for."""
EXIT_OUTPUT = 4
"""The output cannot be written: its disk is full, or it was removed or made read-only."""
EXIT_TRAINING_FAILED = 5
"""The training itself failed: it diverged, lost a peer for good, or has no sound checkpoint."""
EXIT_DEADLINE = 6
"""A deadline passed: start, job, or the evaluator's grace."""
EXIT_STDOUT_LOST = 120
"""Python's own: stdout could not take what was printed."""
EXIT_TERMINATED = 143
"""Stopped by SIGTERM."""


class TrainerError(Exception):
    """An expected error: its text is the message, `exit_code` the task's exit code."""

    exit_code = EXIT_FAILED
    final = False
    """Whether another attempt would end the same way, whatever else has happened meanwhile."""


class ContractError(TrainerError):
    """The host, the arguments or the data differ from what this package was promised."""

    exit_code = EXIT_USAGE


class ServerError(TrainerError):
    """The TensorFlow server cannot run here: port taken, address of another machine, …"""
