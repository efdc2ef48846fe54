"""Locks between processes. Each is gone with the process that holds it, however that ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

POLL_S = 0.1


class Locked(Exception):
    """Another process holds the lock: `about` is what it says of itself, "" if it has not yet."""

    def __init__(self, about: str) -> None:
        super().__init__(about)
        self.about = about


@contextlib.contextmanager
def lock(path: Path, about: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock of a file in the `with` block; the file, for all users, is there as long.

    One that a process has left as it was killed is taken over.

    Args:
        about: a line for whoever finds the lock held.
        wait_s: how long to wait for another process to leave it.
    Raises:
        Locked: another process holds it.
        OSError: the file cannot be made.
    """
    file = _waited_for(path, wait_s)
    try:
        with contextlib.suppress(OSError):  # on a full disk it is a lock all the same
            os.ftruncate(file, 0)
            os.pwrite(file, f"{about}\n".encode(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):  # another user's, in /tmp
            path.unlink()
        os.close(file)


def _waited_for(path: Path, wait_s: float) -> int:
    until = time.monotonic() + wait_s
    while True:
        try:
            return _locked(path)
        except Locked:
            if time.monotonic() >= until:
                raise
        time.sleep(POLL_S)


def _locked(path: Path) -> int:
    """The descriptor of the locked file; it is of the file that has this name now."""
    while True:
        file = _open(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
                return file
        except BlockingIOError:
            about = os.pread(file, 4096, 0).decode(errors="replace").strip()
            os.close(file)
            raise Locked(about) from None
        except FileNotFoundError:
            pass
        os.close(file)  # its holder has just let go of it, and removed it


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
