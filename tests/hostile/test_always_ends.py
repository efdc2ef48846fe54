"""SIGTERM and Ctrl-C end the kit within seconds, whatever a client, a file or a pipe does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster_kit.util import process

MOST_S = 5.0
NO_ENGINE = {**os.environ, "DOCKER_HOST": "unix:///nonexistent/docker.sock"}
SIGNALS = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])


def ends(process: subprocess.Popen[str], number: signal.Signals) -> int:
    """Returns the exit code of a process, which must end within MOST_S after the signal."""
    began = time.monotonic()
    process.send_signal(number)
    try:
        code = process.wait(MOST_S + 5)
    finally:
        process.kill()
    assert time.monotonic() - began < MOST_S
    return code


@SIGNALS
def test_serve_ends_while_clients_neither_send_nor_read(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "cluster_kit", "serve"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=NO_ENGINE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[2]
        address, token = url.removeprefix("http://").split("/")[0], url.partition("token=")[2]
        port = int(address.partition(":")[2])
        request = f"GET /overview.events?token={token} HTTP/1.1\r\nHost: {address}\r\n\r\n"
        held = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(20)]
        for one in held[:10]:
            one.sendall(request.encode())
        assert held[0].recv(15) == b"HTTP/1.1 200 OK"
        assert ends(process, number) in (0, 130)
        for one in held:
            one.close()


STUCK = """
import signal, sys, time
from cluster_kit.util import process
process.interrupt_once()
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    {then}
"""


def stuck(then: str) -> subprocess.Popen[str]:
    """Returns a command that is interrupted, and then does this."""
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK.format(then=then)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_a_command_that_hangs_after_an_interrupt_is_ended(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    with stuck(f"open({str(pipe)!r}).read()") as process:
        assert ends(process, signal.SIGTERM) == 130


def test_saving_and_removing_is_completed() -> None:
    longer = "with process.completing(): time.sleep(process.GRACE_S + 1); print('saved')"
    with stuck(longer) as process:
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None and process.stdout.read() == "saved\n"
        assert process.wait(20) == 0


def test_a_reader_that_does_not_read_does_not_block_an_interrupted_command() -> None:
    code = (
        "import sys; from cluster_kit.util import process, stdio\n"
        "process.interrupt_once(); stdio.outlive_readers()\n"
        "try:\n"
        "    while True: print('x' * 1000)\n"
        "except KeyboardInterrupt:\n"
        "    with process.completing(): print('x' * 1_000_000)\n"
        "    stdio.leave(130)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        time.sleep(1.0)  # the pipe is full
        assert ends(process, signal.SIGTERM) == 130


def test_a_command_that_ignores_sigterm_is_killed() -> None:
    code = (
        "from cluster_kit.util import process\n"
        "process.interrupt_once(); print('ready', flush=True)\n"
        "process.{run}(['sh', '-c', 'trap \"\" TERM INT; sleep 100 & wait; sleep 100'])\n"
    )
    for run in ("run", "hand_over"):
        with subprocess.Popen(
            [sys.executable, "-c", code.format(run=run)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
            time.sleep(0.3)
            assert ends(process, signal.SIGTERM) != 0


def test_of_endless_output_of_a_command_the_beginning_is_read() -> None:
    done = process.run(["sh", "-c", "yes; echo after >&2"], most=1000, timeout_s=60)
    assert done.output == "y\n" * 500
    done = process.run(["sh", "-c", "echo out; echo wrong >&2; exit 3"], most=1000, timeout_s=60)
    assert (done.code, done.output, done.errors) == (3, "out\n", "wrong\n")


AFTERWARDS = """
import signal, sys
from cluster_kit.util.process import afterwards
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started the tests may ignore both
signal.signal(signal.SIGINT, signal.default_int_handler)
with afterwards(["touch", sys.argv[1]]):
    print("ready", flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGHUP, signal.SIGINT])
def test_registered_actions_run_whatever_ends_the_kit(
    tmp_path: Path, number: signal.Signals
) -> None:
    done = tmp_path / "done"
    process = subprocess.Popen(
        [sys.executable, "-c", AFTERWARDS, str(done)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=NO_ENGINE,
    )  # fmt: skip
    assert process.stdout and process.stdout.readline() == b"ready\n"
    assert not done.exists()
    process.send_signal(number)
    process.communicate(timeout=30)
    until = time.monotonic() + 30
    while not done.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
