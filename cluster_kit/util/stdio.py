"""Standard streams that survive a closed pipe or are read by CI, and the end of a command."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import stat
import sys
from typing import Any, NoReturn, TextIO

from cluster_kit.util import process
from cluster_kit.util.terminal import Guard, is_ci

TAKES_S = 1.0
PART = select.PIPE_BUF
"""Bytes that a pipe accepts at once if it accepts any."""
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def open_closed() -> None:
    """Open /dev/null for each standard stream that was closed before the start (`>&-`).

    Otherwise the next file or socket gets its descriptor, and child processes would print into it.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, os.O_RDWR)
        if null != descriptor:
            os.dup2(null, descriptor)
            os.close(null)
        os.set_inheritable(descriptor, True)
        raw = io.FileIO(descriptor, "w" if descriptor else "r", closefd=False)
        buffered = io.BufferedWriter(raw) if descriptor else io.BufferedReader(raw)
        setattr(sys, name, io.TextIOWrapper(buffered, encoding="utf-8"))


class DiskFull(OSError):
    """The disk of the file into which stdout goes is full."""


def name_full_disk() -> None:
    """Let writes to stdout raise DiskFull, so that they differ from writes to other files."""
    with contextlib.suppress(OSError, ValueError):  # in memory
        if stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode) or sys.stdout.isatty():
            return
        raw = _Printed(sys.stdout.fileno(), "w", closefd=False)
        options = (sys.stdout.encoding, sys.stdout.errors)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), *options)


class _Printed(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise DiskFull(error.errno, error.strerror) from None
            raise


def guard_against_commands() -> None:
    """On CI, prevent printed text from acting as a command for the runner.

    A stream that goes into a file is not changed: no runner reads it.
    """
    if is_ci(os.environ):
        sys.stdout, sys.stderr = (_guarded(stream) for stream in (sys.stdout, sys.stderr))


def _guarded(stream: TextIO) -> TextIO:
    try:
        descriptor = stream.fileno()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return stream
    except (AttributeError, OSError, ValueError):  # closed, or in memory
        return stream
    stream.flush()
    return _Guarded(
        io.FileIO(descriptor, "w", closefd=False),
        encoding=stream.encoding,
        errors=stream.errors,
    )


class _Guarded(io.TextIOWrapper):
    def __init__(self, raw: io.FileIO, **options: Any) -> None:
        super().__init__(io.BufferedWriter(raw), line_buffering=True, **options)
        self._guard = Guard()

    def write(self, text: str, /) -> int:
        super().write(self._guard(text))
        return len(text)


def outlive_readers() -> None:
    """Replace stdout and stderr, so that a closed pipe or terminal does not end the command."""
    sys.stdout = lasting(sys.stdout)
    sys.stderr = lasting(sys.stderr)


def leave(code: int) -> NoReturn:
    """Flush the streams, and end the process at once with this exit code.

    Threads that still read from the engine may write at any moment. An interpreter that shuts down
    meanwhile can abort (`_enter_buffered_busy`), with a code of its own.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def lasting(stream: TextIO) -> TextIO:
    """A stream to the same descriptor that drops its output once its pipe is closed.

    A stream without a descriptor is returned as it is.
    """
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or in memory
        return stream
    with contextlib.suppress(OSError):
        stream.flush()
    raw, options = _Lasting(descriptor, "w", closefd=False), (stream.encoding, stream.errors)
    if isinstance(stream, _Guarded):
        return _Guarded(raw, encoding=stream.encoding, errors=stream.errors)
    return io.TextIOWrapper(io.BufferedWriter(raw), *options, line_buffering=True)


class _Lasting(io.FileIO):
    """A raw stream that writes to /dev/null after its pipe or its terminal was closed.

    It does the same if nobody reads the pipe after an interrupt: the command still has to clean up.
    If its disk is full, it drops what does not fit, and says so once on stderr.
    """

    _dropped = False

    def write(self, data: Any, /) -> int:
        if process.is_interrupted() and not _takes(self.fileno()):
            self._give_up()
        try:
            return super().write(memoryview(data)[:PART] if process.is_interrupted() else data)
        except OSError as error:
            if error.errno in _NO_SPACE:
                return self._drop(data, error)
            if error.errno not in (errno.EPIPE, errno.EIO):
                raise
            self._give_up()
            return super().write(data)

    def _drop(self, data: Any, error: OSError) -> int:
        if not self._dropped:
            self._dropped = True
            with contextlib.suppress(OSError):
                stream = {1: "stdout", 2: "stderr"}.get(self.fileno(), "a stream")
                line = f"{stream} cannot be written: {error.strerror}; this command continues\n"
                os.write(2, line.encode())
        return len(data)

    def _give_up(self) -> None:
        # Replace the descriptor itself: child processes inherit it and write to it, too.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)


def _takes(descriptor: int) -> bool:
    """Whether a write of PART bytes will not block, now or in a moment."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(TAKES_S * 1000))
