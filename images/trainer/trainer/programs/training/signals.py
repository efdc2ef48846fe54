"""What comes from outside while TensorFlow trains: SIGTERM, SIGUSR1, the file `save-now`.

Python's own handlers wait until TensorFlow gives the interpreter back, which a step that waits for
a lost peer never does. So a thread reads the wakeup pipe, into which the C handler writes at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

LOOK_S = 0.2


@contextlib.contextmanager
def watched(
    terminated: Callable[[], None],
    save_now: Callable[[], None] | None = None,
    file: Path | None = None,
) -> Iterator[None]:
    """Meanwhile call `terminated` on SIGTERM, and `save_now` on SIGUSR1 or if `file` appears.

    Both are called from a thread; `file` is removed first. Python sets handlers in the main
    thread alone: in another one only the file is watched.
    """
    numbers = (signal.SIGTERM, signal.SIGUSR1) if save_now else (signal.SIGTERM,)
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            ready, _, _ = select.select([read], [], [], LOOK_S)
            came = os.read(read, 64) if ready else b""
            if signal.SIGTERM in came:
                terminated()
            if save_now and (signal.SIGUSR1 in came or appeared(file)):
                save_now()

    watcher = threading.Thread(target=watch, name="signals", daemon=True)
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        kept = {s: signal.signal(s, lambda *_: None) for s in numbers}
        wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watcher.start()
    try:
        yield
    finally:
        if in_main:
            signal.set_wakeup_fd(wakeup)
            for number, handler in kept.items():
                signal.signal(number, handler)
        done.set()
        watcher.join(2 * LOOK_S)
        if not watcher.is_alive():
            os.close(read)
            os.close(write)


def appeared(file: Path | None) -> bool:
    """Whether the file is there; it is removed then."""
    if file is None:
        return False
    try:
        file.unlink()
    except OSError:
        return False
    return True
