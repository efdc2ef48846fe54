"""Errors that are somebody's to repair: they say what, the rule, and the cure. Of a message of
several lines the first one says what it is about."""

from __future__ import annotations

EXIT_USAGE = 2
EXIT_GPU_MISSING = 3
EXIT_CANNOT_SHAPE = 3
EXIT_DEADLINE = 6
EXIT_TERMINATED = 143


class TrainerError(Exception):
    """A deliberate error; its text is the message, `exit_code` the task's exit code."""

    exit_code = 1


class ContractError(TrainerError):
    """The host, the arguments or the data are not what this package was promised."""

    exit_code = EXIT_USAGE


class ServerError(TrainerError):
    """The TensorFlow server cannot run here (port taken, address of another machine, …)."""
