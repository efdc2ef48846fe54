"""Whether a task has connected to another one, by the kernel's own table."""

from __future__ import annotations

import time
from pathlib import Path

HELLO_S = 0.3
"""Whoever has connected says next who it is; it is heard by then."""


def reached(port: int) -> bool:
    """Whether somebody is connected to this port of the host."""
    return any(
        words[1].endswith(f":{port:04X}") and words[3] == "01"
        for table in ("tcp", "tcp6")
        for words in map(str.split, Path("/proc/net", table).read_text().splitlines()[1:])
    )


def wait_for_a_follower(port: int, within_s: float = 30.0) -> None:
    """Return when the leader that listens on this port has heard of a task that follows it."""
    until = time.monotonic() + within_s
    while not reached(port):
        assert time.monotonic() < until, f"nobody has connected within {within_s:g} s"
        time.sleep(0.02)
    time.sleep(HELLO_S)
