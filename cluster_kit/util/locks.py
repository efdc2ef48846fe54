"""Locks between processes. Each is gone with the process that holds it, however that ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class Locked(Exception):
    """Another process holds the lock: `about` is what it says of itself, "" if it has not yet."""

    def __init__(self, about: str) -> None:
        super().__init__(about)
        self.about = about


@contextlib.contextmanager
def lock(path: Path, about: str) -> Iterator[None]:
    """Hold the lock of a file, which is made if it is missing, in the `with` block.

    The file stays, for all users: if it were removed, two processes could hold locks of two files
    of one name.

    Args:
        about: a line for whoever finds the lock held.
    Raises:
        Locked: another process holds it.
        OSError: the file cannot be made.
    """
    with contextlib.ExitStack() as opened:
        file = _open(path)
        opened.callback(os.close, file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Locked(os.pread(file, 4096, 0).decode(errors="replace").strip()) from None
        with contextlib.suppress(OSError):  # on a full disk it is a lock all the same
            os.ftruncate(file, 0)
            os.pwrite(file, f"{about}\n".encode(), 0)
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file."""
    with contextlib.ExitStack() as opened:
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        opened.callback(os.close, file)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError):
        # Without O_CREAT: Linux refuses that for a file of another user in /tmp.
        return os.open(path, flags)
    file = os.open(path, flags | os.O_CREAT, 0o666)
    with contextlib.suppress(PermissionError):  # another user has made it just now
        os.fchmod(file, 0o666)
    return file
