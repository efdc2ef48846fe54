"""Reads and writes small files as a whole, so that a reader never sees part of one."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

AT_ONCE = 1 << 16


def replace(file: Path, text: str) -> None:
    """Write `text` to a temporary file, then rename that to `file`."""
    new = file.with_name(f".{file.name}.new")
    new.write_text(text)
    new.rename(file)


def write_new(file: Path, content: bytes) -> None:
    """Create a file that only its owner can read.

    Raises:
        OSError: it cannot be written, or the name exists, even as a broken link.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "wb") as file_object:
        file_object.write(content)


def read_untrusted(file: Path, most: int, start: int = 0) -> bytes:
    """Returns at most `most` bytes from `start` of a file that any task can have written.

    Raises:
        OSError: it cannot be read, or is a link, a FIFO or anything else that is not a plain file.
    """
    opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(file))
        return os.pread(opened, most, start)
    finally:
        os.close(opened)


def read(file: str | Path) -> bytes:
    """Returns the content of a small file of the kernel; raises OSError.

    Each task reads several of them every second, and file objects would take three times as long.
    """
    opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while part := os.read(opened, AT_ONCE):  # the kernel may return one page at a time
            text += part
        return text
    finally:
        os.close(opened)
