"""The disk that a run is saved on: how much room it has, and what is said if it has none."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from cluster_kit.errors import HostError
from cluster_kit.workspace import RunDirectory

FULL = (errno.ENOSPC, errno.EDQUOT)
RESERVED_BYTES = 256 * 1024
"""For the outcome and the last words of a run that has filled its disk."""
ROOM_BYTES = 64 << 20
_RESERVE = ".reserve"


def reserve(run: RunDirectory) -> None:
    """Take room on the disk for the run's end; raises OSError."""
    (run.path / _RESERVE).write_bytes(bytes(RESERVED_BYTES))


def release(run: RunDirectory) -> None:
    """Give the room back, to be written into; what was removed meanwhile is made again."""
    with contextlib.suppress(OSError):
        run.logs.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        (run.path / _RESERVE).unlink(missing_ok=True)


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Raises HostError, with the folder and its room, if the block raises OSError."""
    try:
        yield
    except OSError as error:
        raise HostError(f"{folder} cannot be written: {why(error, folder)}", HINT) from None


HINT = "make room there, or write access, and run it again"


def why(error: OSError, folder: Path) -> str:
    """What is wrong, in the system's words, and how much room there is if that is it."""
    words = error.strerror or type(error).__name__
    return f"{words} ({free(folder)})" if error.errno in FULL else words


def free(folder: Path) -> str:
    """`0 MB of 64 MB free` on the disk of a folder, or of the nearest one above that exists."""
    with contextlib.suppress(OSError):
        there = next(path for path in (folder, *folder.parents) if path.exists())
        disk = os.statvfs(there)
        room, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        return f"{_megabytes(room)} of {_megabytes(whole)} free"
    return "how much is free is not known"


def has_room(folder: Path) -> bool:
    """Whether the disk of a folder has room for more than a few files; False if it is unknown."""
    with contextlib.suppress(OSError):
        disk = os.statvfs(folder)
        return disk.f_bavail * disk.f_frsize >= ROOM_BYTES
    return False


def _megabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count // 1_000_000} MB"


def is_full(folder: Path) -> bool:
    """Whether nothing more can be written into a folder because its disk is full.

    It is tried on a file without a name, where the file system has such: tasks write there, too.
    """
    nameless = getattr(os, "O_TMPFILE", 0)
    try:
        if not nameless:
            return not os.statvfs(folder).f_bavail
        file = os.open(folder, nameless | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in FULL:
            return True
        with contextlib.suppress(OSError):
            return not os.statvfs(folder).f_bavail
        return False
    try:
        os.write(file, bytes(4096))
        os.fsync(file)
    except OSError as error:
        return error.errno in FULL
    finally:
        os.close(file)
    return False
