"""Runs in a separate pod, and prints new data in the progress files of a run.

Each line is JSON: {"path": …, "at": byte, "data": base64}, and {"scan": n} after each scan of all
files. It ends when the pod is removed.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT, FOLDER = "/output", "progress"
EVERY_S = 0.5
CHUNK = 6000  # a line of a container's log has at most 16 KiB
AT_ONCE, MOST = 4 << 20, 64 << 20
"""The maximum bytes of one file in one scan, and in all scans together."""
MOST_FILES = 10_000


def scan(known: dict[str, tuple[int, int]], root: str = ROOT) -> Iterator[dict[str, Any]]:
    """Yields new data since the last call; `known` has position and time by name.

    A program can write anything there: only regular files are read, with limits per read and in
    total, and links are not followed.
    """
    try:
        folder = os.open(Path(root, FOLDER), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # a link, or not there
        return
    try:
        yield from _scan(known, folder)
    finally:
        os.close(folder)


def _scan(known: dict[str, tuple[int, int]], folder: int) -> Iterator[dict[str, Any]]:
    """Yields new data in an open directory, even if its name was reused."""
    for name in _names(folder):
        path = f"{FOLDER}/{name}"
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError:  # a link, or removed
            continue
        try:
            status = os.fstat(file)
            at, changed = known.get(path, (0, 0))
            if not stat.S_ISREG(status.st_mode):
                continue
            if (status.st_size, status.st_mtime_ns) == (at, changed):
                continue
            at = at if at <= status.st_size else 0
            data = os.pread(file, min(AT_ONCE, MOST - at), at) if at < MOST else b""
        except OSError:
            continue
        finally:
            os.close(file)
        if at >= MOST and path in known:
            continue
        known[path] = at + len(data), status.st_mtime_ns
        for start in range(0, len(data) or 1, CHUNK):
            part = base64.b64encode(data[start : start + CHUNK]).decode()
            yield {"path": path, "at": at + start, "data": part}


def _names(folder: int) -> list[str]:
    """The first names in an open directory, sorted."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in itertools.islice(entries, MOST_FILES))


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    known: dict[str, tuple[int, int]] = {}
    number = 0
    while True:
        for line in scan(known):
            print(json.dumps(line), flush=True)
        number += 1
        print(json.dumps({"scan": number}), flush=True)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
