"""Prints what is new in the progress files of a run, for `engine/kubernetes/mirror.py`.

Each line is JSON: {"path": …, "at": byte, "data": base64}, and {"scan": n} after each look at all
files. It ends when it is removed.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = "/output"
EVERY_S = 0.5
CHUNK = 6000  # a line of a container's log has at most 16 KiB


def scan(known: dict[str, tuple[int, int]], root: str = ROOT) -> Iterator[dict[str, Any]]:
    """Yields what is new since the last call; `known` has size and time of each file."""
    for path in sorted(Path(root, "progress").rglob("*")):
        name = str(path.relative_to(root))
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                at, changed = known.get(name, (0, 0))
                if (status.st_size, status.st_mtime_ns) == (at, changed):
                    continue
                file.seek(at if at <= status.st_size else 0)
                at, data = file.tell(), file.read()
        except OSError:  # a directory, or gone by now
            continue
        known[name] = at + len(data), status.st_mtime_ns
        for start in range(0, len(data) or 1, CHUNK):
            part = base64.b64encode(data[start : start + CHUNK]).decode()
            yield {"path": name, "at": at + start, "data": part}


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
