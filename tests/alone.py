"""Runs tests marked `alone`, which measure time, while no other test runs.

Tests run in several processes, and possibly in several runs at once, that do not know of each
other. File locks decide whose turn it is; the kernel releases them when their process ends.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 900.0
"""Longer than any test. A test that waits longer waits for a test that hangs."""
FOLDER = Path(tempfile.gettempdir())
"""The same folder for all processes, wherever each puts its temporary files later."""


@contextmanager
def turn(alone: bool) -> Iterator[None]:
    """Run the block while no `alone` block of another test runs; with `alone`, while no other block
    runs.

    Raises:
        TimeoutError: other tests were still running after PATIENCE_S.
    """
    with _file("door") as door, _file("room") as room:
        # A test that waits to be alone holds this lock, so that further tests cannot start before
        # it.
        _lock(door, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        _lock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        if not alone:
            fcntl.flock(door, fcntl.LOCK_UN)
        yield


@contextmanager
def _file(name: str) -> Iterator[int]:
    path = FOLDER / f"cluster-kit-tests-{os.getuid()}-{name}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, how: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError(f"no turn within {PATIENCE_S:g} s") from None
            time.sleep(0.05)
