"""Ctrl-C and SIGTERM: the first one interrupts, those after it do not cut off the clean-up."""

from __future__ import annotations

import signal
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


def interrupt_once() -> None:
    """Let the first signal raise KeyboardInterrupt in the main thread and ignore the rest."""
    for number in _NUMBERS:
        signal.signal(number, _interrupt)


def ignore() -> None:
    """From here on only short work remains that must be finished."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    ignore()
    raise KeyboardInterrupt
