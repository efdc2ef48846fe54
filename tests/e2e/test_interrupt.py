"""Ctrl-C at any moment leaves nothing behind."""

from __future__ import annotations

import signal
import subprocess
import time

import docker
import pytest

from tests.kit import Kit, mine


def read_until(process: subprocess.Popen[str], word: str) -> list[str]:
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if word in line:
            return lines
    raise AssertionError(f"{word!r} was never said: {''.join(lines)}")


@pytest.mark.parametrize(
    ("moment", "delay_s"),
    [
        pytest.param("starting 4 containers", 0.3, id="while containers are being created"),
        pytest.param("running", 0.5, id="while TensorFlow starts"),
        pytest.param("epoch 1/", 0.0, id="in the middle of training"),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_cleans_up(
    kit: Kit, client: docker.DockerClient, moment: str, delay_s: float, number: signal.Signals
) -> None:
    process = kit.start("up", "smoke", "--name", kit.name)
    try:
        read_until(process, moment)
        time.sleep(delay_s)
        process.send_signal(number)
        process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert mine(client, kit.name) == ([], [])
    assert kit.outcome()["reason"] == "interrupted"
