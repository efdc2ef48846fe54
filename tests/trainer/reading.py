"""Reads the output of a task, and never identifies a line by its number.

TensorFlow prints lines of its own before all others, and which ones depends on the machine: on some
CPUs it announces oneDNN, and absl reports that its log is not set up yet.
"""

from __future__ import annotations

import re
import subprocess
import threading

TENSORFLOWS_OWN = re.compile(
    r"WARNING: All log messages before absl"
    r"|[IWE]\d{4} [\d:.]+ +\d+ "
    r"|\d{4}-\d\d-\d\d [\d:.]+: [IWE] "
    r"|To enable the following instructions"
)
"""The beginning of a line that TensorFlow, absl or XLA prints, whatever the program does."""


def programs_lines(output: str) -> list[str]:
    """Returns the lines of a task's output that are not TensorFlow's own."""
    return [line for line in output.splitlines() if not TENSORFLOWS_OWN.match(line)]


def read_until(task: subprocess.Popen[str], words: str, within_s: float = 60.0) -> list[str]:
    """Read a task's output up to the first line with these words; returns the lines so far.

    Raises:
        AssertionError: the task ended, or was killed after `within_s` seconds, without them.
    """
    lines: list[str] = []
    late = threading.Timer(within_s, task.kill)
    late.start()
    try:
        for line in task.stdout or ():
            lines.append(line)
            if words in line:
                return lines
    finally:
        late.cancel()
    raise AssertionError(f"{words!r} was not said within {within_s:g} s: {''.join(lines)}")
