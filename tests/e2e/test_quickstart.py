"""The main job, inspected from inside its containers while it runs."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import docker

from tests.e2e.evidence import codes, latest
from tests.e2e.report_page import reported
from tests.e2e.running import running
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine

TASKS = {"chief-0", "worker-0", "worker-1", "ps-0", "ps-1", "evaluator-0"}


def test_the_quickstart_trains_and_leaves_only_its_evidence(
    kit: Kit, client: docker.DockerClient
) -> None:
    with running(kit, "up", "quickstart", "--name", kit.name) as process:
        look_inside(kit, client)
        output, _ = process.communicate(timeout=240)
    assert process.returncode == 0, output
    outcome = kit.outcome()
    assert outcome["success"] is True
    assert outcome["metrics"]["validation_accuracy"] >= 0.95
    assert outcome["metrics"]["test_accuracy"] >= 0.95
    assert codes(kit) == dict.fromkeys(TASKS, 0)
    assert mine(client, kit.name) == ([], [])
    facts = reported(kit, "loss", "accuracy", "steps_per_s")
    pairs = {(edge["sender"], edge["receiver"]) for edge in facts["traffic"]}
    assert {("worker-0", "ps-0"), ("ps-1", "worker-1"), ("chief-0", "worker-0")} <= pairs
    run = latest(kit)
    for kept in ("compose.yaml", "events.jsonl", "logs/chief-0.log", "output/model", "output/best"):
        assert (run / kept).exists(), kept
    assert list((run / "output" / "tensorboard").rglob("events.out.tfevents.*"))


def look_inside(kit: Kit, client: docker.DockerClient) -> None:
    """Check the running containers: pinned addresses, TF_CONFIG of each task, and their rights."""

    def running() -> dict[str, Any] | None:
        containers, _ = mine(client, kit.name)
        found = {c.attrs["Config"]["Hostname"]: c for c in containers if c.status == "running"}
        return found if set(found) == TASKS else None

    containers = wait_for("all six tasks", running)
    planned = json.loads(kit.run("render", "quickstart", "--name", kit.name, "--json").stdout)
    actual = {name: address(container) for name, container in containers.items()}
    assert actual == planned["tasks"]
    assert all(IPv4Address(ip) in IPv4Network(planned["subnet"]) for ip in actual.values())
    for name, container in containers.items():
        check_tf_config(name, container, actual)
        check_confinement(container)


def address(container: Any) -> str:
    (network,) = container.attrs["NetworkSettings"]["Networks"].values()
    return str(network["IPAddress"])


def check_tf_config(name: str, container: Any, actual: dict[str, str]) -> None:
    code, output = container.exec_run(
        ["python3", "-c", "import os; print(os.environ['TF_CONFIG'])"], demux=False
    )
    assert code == 0, output
    config = json.loads(output)
    role, _, index = name.rpartition("-")
    assert config["task"] == {"type": role, "index": int(index)}
    if role == "evaluator":
        assert config["cluster"] == {"evaluator": [f"{actual['evaluator-0']}:2222"]}
        return
    assert config["cluster"] == {
        job: [f"{actual[task]}:2222" for task in sorted(actual) if task.startswith(f"{job}-")]
        for job in ("chief", "worker", "ps")
    }


def check_confinement(container: Any) -> None:
    host = container.attrs["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert not host["PortBindings"]
    assert host["Init"] is True
