"""Waiting for events, and signals as events."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from queue import SimpleQueue

from trainer.agent.event_queue import next_event

PUT_SIGNALS = """
import os, signal, sys, time
from queue import SimpleQueue
from trainer.agent.event_queue import next_event, put_signals
events = SimpleQueue()
put_signals(events, lambda: "stopped", signal.SIGTERM)
"""


def run(program: str) -> list[str]:
    ended = subprocess.run(
        [sys.executable, "-c", PUT_SIGNALS + program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return ended.stdout.split()


def test_an_event_is_returned_at_once_and_none_at_the_end_of_the_time():
    events: SimpleQueue[object] = SimpleQueue()
    events.put("here")
    assert next_event(events) == "here"
    began = time.monotonic()
    assert next_event(events, began + 0.05) is None
    assert 0.05 <= time.monotonic() - began < 5
    assert next_event(events, began - 1.0) is None
    threading.Timer(0.05, events.put, ("later",)).start()
    assert next_event(events) == "later"


def test_a_signal_that_another_thread_gets_ends_the_main_threads_wait():
    """As the kernel may choose; the handler in Python would run only after the wait."""
    assert run(
        "import threading\n"
        "def get():\n"
        "    time.sleep(0.3)\n"
        "    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)\n"
        "threading.Thread(target=get, daemon=True).start()\n"
        "print(next_event(events, time.monotonic() + 20))\n"
    ) == ["stopped"]


def test_each_signal_of_another_process_is_an_event():
    assert run(
        "import subprocess\n"
        "kill = 'import os, time; [(time.sleep(0.3), os.kill(os.getppid(), 15)) for _ in (1, 2)]'\n"
        "subprocess.Popen([sys.executable, '-c', kill])\n"
        "print(*(next_event(events, time.monotonic() + 20) for _ in (1, 2)))\n"
    ) == ["stopped", "stopped"]


def test_another_signal_is_no_event():
    assert run(
        "signal.signal(signal.SIGUSR1, lambda *_: print('own'))\n"
        "os.kill(os.getpid(), signal.SIGUSR1)\n"
        "print(next_event(events, time.monotonic() + 0.5))\n"
    ) == ["own", "None"]
