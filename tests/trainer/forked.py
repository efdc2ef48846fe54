"""Forks the tasks of tests from one process that has already imported the trainer.

Starting Python and importing the supervisor takes a tenth of a second of CPU time, and tests start
tasks hundreds of times. A forked task is a normal process: it has its own environment, output,
signals and exit code, and runs `trainer.__main__` from its first line.

This file is also the program of that process, which is started with the number of a socket.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

PRELOADED = (
    "trainer.agent.supervisor.supervise",
    "trainer.agent.stacks",
    "trainer.agent.servers.serve",
)
PATIENCE_S = 60.0
HURRIED = {
    "trainer.agent.disk_space:LOOK_S": 0.1,
    "trainer.agent.supervisor.stall:LOOK_S": 0.1,
    "trainer.agent.supervisor.supervise:LOOK_S": 0.05,
}
"""Polling intervals of forked tasks, for checks that take seconds in a container. Times that other
processes need are unchanged, since a busy machine needs them."""


class Task:
    """A forked task, with the methods of subprocess.Popen that tests use."""

    def __init__(self, parent: socket.socket, arguments: Sequence[str], environment: Mapping):
        self._said, theirs = socket.socketpair()
        read, write = os.pipe()
        with theirs:
            socket.send_fds(parent, [b"x"], [write, theirs.fileno()])
        os.close(write)
        self.stdout = open(read, encoding="utf-8", errors="replace")  # noqa: PTH123, SIM115
        asked = {
            "arguments": list(arguments),
            "environment": dict(environment),
            "at": str(Path.cwd()),
        }
        self._said.sendall(json.dumps(asked).encode() + b"\n")
        self._heard = b""
        self.returncode: int | None = None
        self.pid = self._hear(PATIENCE_S)

    def _hear(self, within_s: float | None) -> int:
        """Returns the next number from the parent: the process id, then the exit code."""
        self._said.settimeout(within_s)
        while b"\n" not in self._heard:  # a task that ended at once has sent both
            part = self._said.recv(64)
            assert part, "the process that forks tasks has ended"
            self._heard += part
        line, _, self._heard = self._heard.partition(b"\n")
        return int(line)

    def wait(self, timeout: float | None = None) -> int:
        """Returns its exit code, negative if a signal killed it; raises
        subprocess.TimeoutExpired."""
        if self.returncode is None:
            try:
                self.returncode = self._hear(timeout)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("trainer", timeout or 0.0) from None
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Returns its output to its end; raises subprocess.TimeoutExpired."""
        outputs: list[str] = []
        reader = threading.Thread(target=lambda: outputs.append(self.stdout.read()), daemon=True)
        reader.start()
        reader.join(timeout)
        if reader.is_alive():
            raise subprocess.TimeoutExpired("trainer", timeout or 0.0)
        self.wait(timeout)
        return outputs[0], None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its parent knows
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@contextmanager
def parent(image: Path) -> Iterator[socket.socket]:
    """Start the process that forks tasks, as a socket; it ends with all tasks when the socket is
    closed."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": str(image)},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        yield ours
        ours.close()
        process.wait(PATIENCE_S)


def serve(asking: socket.socket) -> None:
    """Fork a task for each request, and report how it ended, until the socket is closed."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    tasks: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([asking, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            for pid, status in _ended():
                with contextlib.suppress(OSError), tasks.pop(pid) as told:
                    told.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        if asking in ready:
            _, given, *_ = socket.recv_fds(asking, 1, 2)
            if not given:
                break
            pid, told = _fork(*given)
            tasks[pid] = told
            told.sendall(b"%d\n" % pid)
    for pid in tasks:
        os.kill(pid, signal.SIGKILL)


def _ended() -> Iterator[tuple[int, int]]:
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def _fork(output: int, number: int) -> tuple[int, socket.socket]:
    told = socket.socket(fileno=number)
    with told.makefile() as lines:
        asked = json.loads(lines.readline())
    pid = os.fork()
    if pid == 0:
        _become(output, asked)
    os.close(output)
    return pid, told


def _become(output: int, asked: Mapping) -> NoReturn:
    """Become the task, as `python -m trainer ARGUMENTS…` would be."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.closerange(3, max(output, 64) + 1)
        sys.stdout, sys.stderr = open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.executable = os.environ.get("WARM_PYTHON") or sys.executable  # warm/server.py
        os.chdir(asked["at"])
        sys.path[0] = asked["at"]
        sys.argv = ["trainer", *asked["arguments"]]
        runpy.run_module("trainer", run_name="__main__", alter_sys=True)
    except BaseException:  # noqa: BLE001 - a task's process never goes on as its parent
        traceback.print_exc()
    os._exit(1)


if __name__ == "__main__":
    for module in PRELOADED:
        importlib.import_module(module)
    for name, seconds in HURRIED.items():
        module, _, constant = name.partition(":")
        assert hasattr(importlib.import_module(module), constant), name
        setattr(sys.modules[module], constant, seconds)
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
