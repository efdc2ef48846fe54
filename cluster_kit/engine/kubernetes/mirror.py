"""Brings the progress files of a run from its claim to this host.

A pod beside the tasks has the claim mounted and prints what is new in these files, in lines of
JSON (`backends/kubernetes/inside/reader.py`). Its log is all that is asked for: that takes no more
rights than other logs do.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from pathlib import Path
from typing import Any

ROOT = "progress"
"""The only directory that is brought: results and checkpoints stay in the claim."""


WRONG = (ValueError, KeyError, TypeError, OverflowError, RecursionError, OSError)
"""What a line can raise that is no reader's: whoever can write logs can write any."""


class Mirror:
    """Writes what the reader has printed below a directory of this host.

    Lines may come twice: each says where in its file its bytes belong. `scans` is how often the
    reader has looked at all files.
    """

    def __init__(self, output: Path) -> None:
        self._output = output
        self.scans = 0
        self.last = ""
        """The time of the last line, as the API server writes it."""

    def take(self, log: str) -> None:
        """Take lines of the reader's log, each with its time in front; others are left out."""
        for line in log.splitlines():
            stamp, _, text = line.partition(" ")
            with contextlib.suppress(*WRONG):
                self._take(json.loads(text))
                self.last = stamp

    def _take(self, said: dict[str, Any]) -> None:
        if "scan" in said:
            self.scans = max(self.scans, int(said["scan"]))
            return
        path = self._inside(str(said["path"]))
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = "r+b" if path.exists() else "wb"
        with path.open(mode) as file:
            file.seek(int(said["at"]))
            file.write(base64.b64decode(said["data"]))
        os.utime(path)  # a beat is seen by when its file was written, by this host's clock

    def _inside(self, name: str) -> Path | None:
        """The file of that name, None if it would lie elsewhere: a program can write any line."""
        parts = Path(name).parts
        if not parts or parts[0] != ROOT or ".." in parts:
            return None
        return self._output / name
