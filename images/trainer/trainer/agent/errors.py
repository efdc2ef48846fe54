"""Errors that a user can fix.

A message has the value, the rule, and what to do; the first of several lines is the summary. A
task's exit code is the program's if the program ended by itself.
"""

from __future__ import annotations

from trainer.contract.endings import EXIT_FAILED, EXIT_USAGE


class TrainerError(Exception):
    """An expected error; its text is the message, `exit_code` is the task's exit code."""

    exit_code = EXIT_FAILED
    final = False
    """Whether another attempt would certainly end the same way."""


class ContractError(TrainerError):
    """The host's variables, the arguments or the data are invalid."""

    exit_code = EXIT_USAGE


class ServerError(TrainerError):
    """The TensorFlow server cannot run here: the port is taken, the address is another machine's,
    …"""
