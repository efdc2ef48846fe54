"""A program's handler for SIGTERM stays when C code sets another, as TensorFlow does."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import IMAGE

pytestmark = pytest.mark.processes

PROGRAM = """
import ctypes, os, signal, threading
from trainer.agent.injected.tensorflow_patches import keeping_sigterm

HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)
of_c = HANDLER(lambda number: print("C", number, flush=True))

def enable(word):
    print(word, flush=True)
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, HANDLER]
    libc.signal(signal.SIGTERM, of_c)
    return 7

def own(number, frame):
    print("program", number, flush=True)

enable = keeping_sigterm(enable)
"""
SET = "signal.signal(signal.SIGTERM, own)\n"
ENABLE = "assert enable('strategy') == 7\n"
ELSEWHERE = (
    "thread = threading.Thread(target=enable, args=['thread']); thread.start(); thread.join()\n"
)
KILL = "os.kill(os.getpid(), signal.SIGTERM)\n"


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        (SET + ENABLE + KILL, ["strategy", "C 15", "program 15"]),
        (ENABLE + SET + KILL, ["strategy", "program 15"]),
        (ENABLE + KILL, ["strategy", "C 15"]),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + ENABLE + KILL, ["strategy", "C 15"]),
        (SET + ELSEWHERE + KILL, ["thread", "program 15"]),
    ],
    ids=["before", "after", "none", "ignored", "in another thread"],
)
def test_both_handlers_run(steps: str, lines: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + steps],
        env={"PYTHONPATH": str(IMAGE)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, lines, "")
