"""Ctrl-C leaves nothing behind: real signals and containers, at two moments.

The fake engine covers all moments: tests/unit/run/test_interrupt.py.
"""

from __future__ import annotations

import signal
import time

import docker
import pytest

from tests.e2e.running import STEPS, read_until, running
from tests.kit import Kit, mine

LONG = "--args=--epochs 500 --steps-per-epoch 20"
"""No machine finishes this before it is interrupted."""


@pytest.mark.parametrize(
    ("moment", "delay_s", "number"),
    [
        pytest.param(
            "starting 4 containers", 0.3, signal.SIGTERM, id="while containers are being created"
        ),
        pytest.param("epoch 1/", 0.0, signal.SIGINT, id="in the middle of training"),
    ],
)
def test_an_interrupted_run_cleans_up(
    kit: Kit, client: docker.DockerClient, moment: str, delay_s: float, number: signal.Signals
) -> None:
    with running(kit, "up", "smoke", "--name", kit.name, LONG) as process:
        read_until(process, moment)
        time.sleep(delay_s)
        process.send_signal(number)
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert mine(client, kit.name) == ([], [])
    assert kit.outcome()["reason"] == "interrupted"


def test_a_reader_that_ends_does_not_change_the_verdict(
    kit: Kit, client: docker.DockerClient
) -> None:
    small = ("--program", STEPS, "--set", "evaluator=0")
    with running(kit, "up", "smoke", "--name", kit.name, *small) as process:
        read_until(process, "starting 3 containers")
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=120) == 0
    assert kit.outcome()["success"]
    assert mine(client, kit.name) == ([], [])
