"""Lets a Python program write the stacks of all its threads to a file, at a signal, and to stderr
when it crashes: a segmentation fault has no traceback otherwise.

faulthandler writes them from the signal's own handler, so a program that hangs in TensorFlow's C++
code shows them, too. Also loaded by its path (on_path/), at the start of every program: imports
nothing of this package, and nothing slow.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal

VARIABLE = "CLUSTER_KIT_STACKS"
SIGNAL = signal.SIGUSR2


def arm(file: str) -> None:
    """Let this process write its stacks to `file` at SIGNAL, and to stderr when it crashes. A later
    process, such as one that the program starts, leaves the file to the first one."""
    with contextlib.suppress(RuntimeError, ValueError, OSError):  # without stderr
        faulthandler.enable()
    try:
        with open(f"{file}.pid", "x") as pid:  # noqa: PTH123 - pathlib costs 5 ms at a start
            pid.write(str(os.getpid()))
        faulthandler.register(SIGNAL, open(file, "a"), all_threads=True)  # noqa: PTH123, SIM115
    except OSError:
        return  # without the file no task requests stacks
