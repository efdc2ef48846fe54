"""Where a Python program is: the stacks of all its threads, written at a signal.

faulthandler writes them from the signal's own handler, so a program that hangs in TensorFlow's C++
code shows them, too. Also loaded by its path (on_path/): imports nothing of this package.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import tempfile
import time
from pathlib import Path

VARIABLE = "CLUSTER_KIT_STACKS"
SIGNAL = signal.SIGUSR2
PATIENCE_S = 2.0
LOOK_S = 0.02


def place(task: str) -> Path:
    """The file in which a task's supervisor notes the stacks file of its program, or its own."""
    return Path(tempfile.gettempdir()) / f"cluster-kit-stacks-{task}"


def arm(file: str) -> None:
    """Let this process write its stacks to `file` at SIGNAL. A process that comes later, such as
    one that the program starts, leaves the file to the first."""
    try:
        with open(f"{file}.pid", "x") as pid:  # noqa: PTH123 - pathlib costs 5 ms at a start
            pid.write(str(os.getpid()))
        faulthandler.register(SIGNAL, open(file, "a"), all_threads=True)  # noqa: PTH123, SIM115
    except OSError:
        return  # without the file nobody asks


def ask(file: Path, patience_s: float = PATIENCE_S) -> str:
    """The stacks of the process that armed `file`; "" if there is none or it does not answer."""
    try:
        pid = int(Path(f"{file}.pid").read_text())
        before = file.stat().st_size
        os.kill(pid, SIGNAL)
    except (OSError, ValueError):
        return ""
    until, size = time.monotonic() + patience_s, before
    while time.monotonic() < until:
        time.sleep(LOOK_S)
        last, size = size, file.stat().st_size
        if size > before and size == last:
            break
    with file.open(errors="replace") as written:
        written.seek(before)
        return written.read()
