"""Allocates memory until the kernel kills this container's largest process (out of memory).

Prints nothing on success, else the reason. The argument is the maximum number of bytes to allocate.
`oom_score_adj` makes that process the first to be killed. Otherwise this process could become the
largest, and be killed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

PIECE = 1 << 20
WITHIN_S = 10.0


def resident(process: Path) -> int:
    """The pages of a process in memory; 0 if it has ended, or is this process."""
    try:
        pages = int((process / "statm").read_text().split()[1])
    except OSError:
        return 0
    return 0 if process.name == str(os.getpid()) else pages


def largest() -> Path:
    """The process that uses most memory."""
    return max((p for p in Path("/proc").iterdir() if p.name.isdecimal()), key=resident)


def is_alive(process: Path) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def become_owner(process: Path) -> None:
    """Become the owner of the file: root without capabilities may not write other users' files."""
    if os.getuid() == 0:
        owner = process.stat()
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)


def exhaust(most: int) -> str:
    """Allocate memory until the largest process is killed; return "", or why it was not killed."""
    victim, end = largest(), time.monotonic() + WITHIN_S
    become_owner(victim)
    (victim / "oom_score_adj").write_text("1000")
    taken: list[bytes] = []
    while is_alive(victim):
        if time.monotonic() > end:
            return f"{len(taken)} MiB were taken within {WITHIN_S:g} s, and nothing happened"
        if len(taken) < most // PIECE:
            taken.append(b"x" * PIECE)
        else:
            time.sleep(0.05)  # a killed process exists until it is scheduled again
    return ""


if __name__ == "__main__":
    print(exhaust(int(sys.argv[1])), end="")
