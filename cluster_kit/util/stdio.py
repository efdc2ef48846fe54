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
    """

    def write(self, data: Any, /) -> int:
        if process.is_interrupted() and not _takes(self.fileno()):
            self._give_up()
        try:
            return super().write(memoryview(data)[:PART] if process.is_interrupted() else data)
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.EIO):
                raise
            self._give_up()
            return super().write(data)

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
