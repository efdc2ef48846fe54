"""Ctrl-C and SIGTERM: the first interrupts, later ones are ignored so that clean-up completes."""

from __future__ import annotations

import signal
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def interrupt_once() -> None:
    """Let the first signal raise KeyboardInterrupt in the main thread and ignore the rest."""
    for number in _NUMBERS:
        signal.signal(number, _interrupt)


def ignore() -> None:
    """Ignore both signals from now on: for the short work at the end that must be completed."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    ignore()
    raise KeyboardInterrupt
