"""One trace of all tasks in each way of training; of a single server: tests/trainer/agent/."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import docker
import pytest

from tests.e2e.evidence import latest, output
from tests.e2e.report_page import reported
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine

PROGRAM = Path(__file__).parent / "programs" / "coordinator.py"
AT_STEP = ("--set", "profile.at_step=20", "--set", "profile.seconds=1")


def taken(kit: Kit) -> dict[str, Any]:
    """Returns the facts of a run's only trace; its processes must be those tasks."""
    (file,) = (output(kit) / "profile").glob("*/profile.json")
    facts: dict[str, Any] = json.loads(file.read_text())
    events = json.loads(gzip.decompress((file.parent / facts["trace"]).read_bytes()))["traceEvents"]
    processes = {one["args"]["name"] for one in events if one["name"] == "process_name"}
    assert processes == facts["tasks"].keys()
    assert facts["missing"] == {}
    return facts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manifest", "arguments", "tasks", "waits_for"),
    [
        (
            "linear-regression",
            "--args=--steps 4000 --learning-rate 0.002 --log-steps 100 --pause-ms 5",
            {"worker-0", "worker-1", "ps-0"},
            "variables",
        ),
        (
            "quickstart",
            "--args=--epochs 12",
            {"chief-0", "worker-0", "worker-1", "ps-0", "ps-1"},
            "variables",
        ),
        (
            "all-reduce",
            "--args=--epochs 4 --steps-per-epoch 200 --batch-size 16 --learning-rates 0:2e-3",
            {"worker-0"},  # TensorFlow's profiler can crash the others
            "the others of an all-reduce",
        ),
    ],
)
def test_a_trace_begins_at_the_manifests_step(
    kit: Kit, manifest: str, arguments: str, tasks: set[str], waits_for: str
) -> None:
    done = kit.run("up", manifest, "--name", kit.name, arguments, *AT_STEP)
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed
    facts = taken(kit)
    assert facts["tasks"].keys() == tasks
    worker = facts["tasks"]["worker-0"]
    assert worker["runs"] and worker["waits_for"] == waits_for and worker["longest_ops"]
    assert not [note for note in kit.outcome()["notes"] if "profile" in note]
    assert f"-0 | traced 1 s of {len(tasks)} task" in printed
    (profile,) = reported(kit, "loss")["profiles"]
    assert (latest(kit) / profile["file"]).is_file()


@pytest.mark.slow
def test_a_users_own_program_is_traced_unchanged(kit: Kit, client: docker.DockerClient) -> None:
    arguments = ("--program", str(PROGRAM), "--args", "1000000", "--set", "evaluator=0")
    up = kit.run("up", "smoke", "--detach", "--name", kit.name, *arguments)
    assert up.returncode == 0, up.stderr

    def trained() -> dict[str, Any] | None:
        done = kit.run("profile", kit.name, "--seconds", "1", "--json")
        facts: dict[str, Any] = json.loads(done.stdout)
        runs = facts.get("tasks", {}).get("worker-0", {}).get("runs")
        return facts if runs and not facts["missing"] else None

    facts = wait_for("steps in a trace", trained, timeout_s=120)
    assert facts["tasks"].keys() == {"chief-0", "worker-0", "ps-0"}
    assert facts["steps_per_s"].keys() == {"before", "during"}, "functions are counted as steps"
    kit.run("down", kit.name)
    assert mine(client, kit.name) == ([], [])
