"""Finds out from the kernel's table whether a task has connected to another one."""

from __future__ import annotations

import time

from waiting import wait_for

from trainer.agent.beacon.client import ESTABLISHED, read_tables

HELLO_S = 0.3
"""A client sends its name after it has connected; within this time it is read."""


def reached(port: int) -> bool:
    """Returns whether a client is connected to this port of the host."""
    return any(
        words[1].endswith(f":{port:04X}") and words[3] == ESTABLISHED
        for table in read_tables()
        for words in map(str.split, table.splitlines()[1:])
    )


def wait_for_a_follower(port: int, within_s: float = 30.0) -> None:
    """Return when the leader that listens on this port has accepted a follower."""
    wait_for(lambda: reached(port), within_s)
    time.sleep(HELLO_S)
