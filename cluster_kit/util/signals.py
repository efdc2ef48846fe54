"""Ctrl-C and SIGTERM of a command: the first interrupts, later ones are ignored so that clean-up
completes. A caller from Python keeps its own handlers."""

from __future__ import annotations

import signal
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_is_command = False


def interrupt_once() -> None:
    """Let the first signal raise KeyboardInterrupt in the main thread and ignore the rest."""
    global _is_command
    _is_command = True
    for number in _NUMBERS:
        signal.signal(number, _interrupt)


def ignore() -> None:
    """Ignore both signals from now on: for the short work at the end that must be completed.

    Nothing if `interrupt_once` was never called: this process is not the kit's command.
    """
    for number in _NUMBERS if _is_command else ():
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    ignore()
    raise KeyboardInterrupt
