"""Standard streams that outlive their reader: what nobody can read any more is dropped quietly."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any, TextIO


def outlive_readers() -> None:
    """For verbs that do more than print: they run to their own verdict, whoever reads of it."""
    sys.stdout = lasting(sys.stdout)
    sys.stderr = lasting(sys.stderr)


def lasting(stream: TextIO) -> TextIO:
    """The same stream, which writes to nowhere once its pipe is closed."""
    try:
        descriptor = stream.fileno()
    except (AttributeError, OSError, ValueError):  # closed, or something in memory
        return stream
    with contextlib.suppress(OSError):
        stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Lasting(descriptor, "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=True,
    )


class _Lasting(io.FileIO):
    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            # The descriptor itself, so that programs that are started from here can write to it.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return super().write(data)
