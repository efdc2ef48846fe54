"""Ctrl-C and SIGTERM of a command: the first interrupts, later ones are ignored so that clean-up
completes. A caller from Python keeps its own handlers.

An interrupted command ends within GRACE_S whatever it waits for, except while it completes what
must not be left half done: see `completing`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

GRACE_S = 4.0
POLL_S = 0.1
EXIT_CODE = 130
_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_is_command = False
_is_interrupted = False
_calls = 0
"""Of `interrupt_once`: after another one the command goes on with something else."""
_completing = 0


def interrupt_once() -> None:
    """Let the first signal raise KeyboardInterrupt in the main thread and ignore the rest."""
    global _is_command, _is_interrupted, _calls
    if not _is_command:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_watch, args=(reading,), daemon=True).start()
    _is_command, _is_interrupted = True, False
    _calls += 1
    for number in _NUMBERS:
        signal.signal(number, _interrupt)


def ignore() -> None:
    """Ignore both signals from now on: for the short work at the end that must be completed.

    Nothing if `interrupt_once` was never called: this process is not the kit's command.
    """
    for number in _NUMBERS if _is_command else ():
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def completing() -> Iterator[None]:
    """A block that an interrupted command completes, also if that takes longer than GRACE_S.

    For what saves and removes. Whatever it does must end by itself.
    """
    global _completing
    _completing += 1
    try:
        yield
    finally:
        _completing -= 1


def is_interrupted() -> bool:
    """Whether a signal has interrupted this command."""
    return _is_interrupted


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    global _is_interrupted
    ignore()
    _is_interrupted = True
    raise KeyboardInterrupt


def _watch(arrivals: int) -> None:
    """See to it that each signal interrupts, and that the command ends; runs in a thread.

    Args:
        arrivals: where Python writes the number of a signal as soon as the system delivers it.
    """
    while arrived := os.read(arrivals, 1):
        if (number := arrived[0]) in _NUMBERS:
            _reach_main_thread(number)
            if _is_interrupted:
                _end_if_stuck()


def _reach_main_thread(number: int) -> None:
    """Repeat a signal until its handler has run.

    One that comes just before the main thread begins to wait for a lock would not wake it.
    """
    main = threading.main_thread().ident
    while not _is_interrupted and signal.getsignal(number) is _interrupt and main is not None:
        time.sleep(POLL_S)
        if not _is_interrupted and signal.getsignal(number) is _interrupt:
            signal.pthread_kill(main, number)


def _end_if_stuck() -> None:
    """End this process when it has completed nothing for GRACE_S; return if it goes on instead."""
    call, until = _calls, time.monotonic() + GRACE_S
    while time.monotonic() < until:
        time.sleep(POLL_S)
        if call != _calls:
            return
        if _completing:
            until = time.monotonic() + GRACE_S
    os._exit(EXIT_CODE)
