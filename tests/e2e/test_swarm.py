"""On a real swarm of one node, made on an engine of the tests' own: a run, a crash, an end."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_kit.image.build import image_tag
from tests.gpu import second_engine
from tests.gpu.second_engine import SecondEngine
from tests.kit import Kit, new_kit

pytestmark = [
    pytest.mark.slow,  # the image is copied, and swarm starts a crashed task in its own time
    pytest.mark.skipif(bool(second_engine.why_not()), reason=second_engine.why_not() or "-"),
]
WITHIN_S = 180


@pytest.fixture(scope="module")
def swarm() -> Iterator[SecondEngine]:
    with second_engine.running("nvidia") as engine:
        made = engine.docker("swarm", "init", "--advertise-addr", "127.0.0.1")
        assert made.returncode == 0, made.stderr
        engine.load(image_tag("cpu"))
        yield engine
        engine.docker("swarm", "leave", "--force")


@pytest.fixture
def kit(swarm: SecondEngine, tmp_path: Path) -> Kit:
    return new_kit(tmp_path / "ws", "swarm", DOCKER_HOST=swarm.host)


def nothing_is_left(swarm: SecondEngine) -> None:
    for listed in (("service", "ls"), ("config", "ls"), ("secret", "ls"), ("ps", "-a")):
        assert swarm.docker(*listed, "-q").stdout == "", listed
    assert "cluster-kit" not in swarm.docker("network", "ls").stdout


def test_a_worker_that_crashes_comes_back_and_the_run_ends_well(
    swarm: SecondEngine, kit: Kit
) -> None:
    up = kit.start("up", "quickstart", "--engine", "swarm", "--name", kit.name,
                   "--args", "--epochs 25")  # fmt: skip
    steps = kit.root / "runs" / kit.name / "latest" / "output" / "progress" / "chief-0.jsonl"
    _wait_for(lambda: steps.exists() and '"epoch": 2' in steps.read_text())
    label = ("--filter", "label=cluster-kit.role=worker", "--filter", "label=cluster-kit.index=1")
    (worker,) = swarm.docker("ps", "-q", *label).stdout.split()
    pid = swarm.docker("inspect", "-f", "{{.State.Pid}}", worker).stdout
    os.kill(int(pid), signal.SIGKILL)
    told = up.communicate(timeout=WITHIN_S)
    assert up.returncode == 0, told
    outcome = kit.outcome()
    tasks = {task["name"]: task for task in outcome["tasks"]}
    assert outcome["success"] and tasks["worker-1"]["restarts"] >= 1
    assert tasks["chief-0"]["ip"] != ""
    assert "TensorFlow server ready" in (kit.root / _latest(kit) / "logs/worker-1.log").read_text()
    nothing_is_left(swarm)


def test_a_cluster_that_was_left_is_found_and_removed(swarm: SecondEngine, kit: Kit) -> None:
    up = kit.run("up", "quickstart", "--engine", "swarm", "--name", kit.name, "--detach")
    assert up.returncode == 0, up.stderr
    seen = json.loads(kit.run("status", kit.name, "--json").stdout)
    assert len(seen[kit.name]) == 6
    assert json.loads(kit.run("status", "--engine", "compose", "--json").stdout) == {}
    assert kit.run("down", kit.name).returncode == 0
    assert kit.outcome()["reason"] == "stopped"
    nothing_is_left(swarm)


def _latest(kit: Kit) -> Path:
    return Path("runs") / kit.name / "latest"


def _wait_for(happened: object) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not happened():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.5)
