"""Tests run at the same time, in processes and runs that know nothing of each other; but what is
marked `alone`, as it measures time, has the machine to itself. Locks of files say whose turn it is,
and are gone with the process that holds them."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 900.0
"""Longer than any test: whoever waits longer waits for something that hangs."""
FOLDER = Path(tempfile.gettempdir())
"""The same for all of them, wherever each has its temporary files later."""


@contextmanager
def turn(alone: bool) -> Iterator[None]:
    """A block with nobody else's `alone` block, and with no other block at all where `alone`.

    Raises:
        TimeoutError: others went on for PATIENCE_S.
    """
    with _file("door") as door, _file("room") as room:
        # Who waits to be alone keeps the door, so that no stream of others keeps them waiting.
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
