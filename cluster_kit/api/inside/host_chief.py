"""Runs in the chief's container while the coordinator is a process on the host, and ends with it.

It keeps the job going: the leader's supervisor in the same container checks the servers, listens to
the other tasks and announces the job's end. Standard library only, since it runs alone, in the
container.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

LOCK = "host-chief.lock"
"""The lock file in the run's output: the coordinator's process holds it until the process ends."""
DONE = "done"
"""The lock file's content if the coordinator ended successfully."""
POLL_S = 0.2


def ended(lock: Path, stale: int = 0) -> str | None:
    """How the coordinator ended: DONE, or "" if it left no message; None while it runs.

    Args:
        stale: the inode of an old lock, to be ignored.
    """
    try:
        with lock.open() as file:
            if os.fstat(file.fileno()).st_ino == stale:
                return None
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return file.read().strip()
    except (FileNotFoundError, BlockingIOError):
        return None


def main() -> int:
    """Wait for the coordinator's end; return the exit code."""
    lock = Path(os.environ.get("CLUSTER_KIT_OUTPUT") or "/output") / LOCK
    print("the chief is a process on the host", flush=True)
    stale = lock.stat().st_ino if ended(lock) is not None else 0  # left by the run that is resumed
    while (ending := ended(lock, stale)) is None:
        time.sleep(POLL_S)
    if ending == DONE:
        return 0
    print("the coordinator's process on the host has ended without a message", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
