"""Locks between processes. Each is gone with the process that holds it, however that ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class Locked(Exception):
    """Another process holds the lock: `holder` is its process id, "" if that is not known."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is made with its directory, in the `with` block.

    The file stays: if it were removed, two processes could hold locks of two files of one name.

    Raises:
        Locked: another process holds it.
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Locked(file.read().strip()) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
