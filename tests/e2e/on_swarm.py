"""Helpers for clusters on the tests' own swarm: start, watch, and check that nothing is left."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.image.kit_image import image_tag
from cluster_kit.plan.addresses import pick_subnet
from tests.e2e.node import Node
from tests.e2e.nodes import Swarm
from tests.kit import Kit, new_kit

WITHIN_S = 300
MANAGER, BESIDE, OTHERS = "node.role==manager", "node.hostname==node-1", "node.role!=manager"
HOLDS = "holds==yes"
IMAGES = {image_tag("cpu"): image_tag("cpu")}


def nothing_is_left(swarm: Swarm) -> None:
    """Fail if a service, a container or a network is left on any node."""
    for listed in (("service", "ls"), ("config", "ls"), ("secret", "ls")):
        assert swarm.manager.said(*listed, "-q") == "", listed
    for node in swarm.alive:
        wait_for(lambda node=node: node.said("ps", "-aq") == "")
        assert "cluster-kit" not in node.said("network", "ls")


def started_with(swarm: Swarm, tmp_path: Path, **where: str) -> Kit:
    """Returns a workspace for this swarm; its manifest is the quickstart with these nodes for
    roles."""
    kit = new_kit(tmp_path / "ws", "dies", DOCKER_HOST=swarm.manager.host)
    change(kit, **where)
    return kit


def change(kit: Kit, manifest: str = "quickstart", **where: str) -> None:
    """Give a manifest this cluster's name, and each role (`ps`) or task (`ps_1`) its nodes."""
    text = (kit.root / "compose" / f"{manifest}.toml").read_text()
    more = ""
    for name, chosen in where.items():
        role, _, index = name.rpartition("_")
        part = f"task.{role}-{index}" if index.isdigit() else f"role.{name}"
        more += f'[{part}]\nnodes = "{chosen}"\n'
    named = text.replace(f'name = "{manifest}"', f'name = "{kit.name}"\nengine = "swarm"')
    (kit.root / "compose" / f"{kit.name}.toml").write_text(named + more)


def with_one_subnet(kit: Kit, subnet: IPv4Network | None) -> Kit:
    """Returns a kit whose cluster would use this subnet; it finds out at the start that others use
    it."""
    if subnet is None:
        return kit
    others = (replace(kit, name=f"{kit.name}-{number:x}") for number in range(99_999))
    return next(other for other in others if pick_subnet(other.name, 24, ()) == subnet)


def subnet_of(kit: Kit) -> str:
    """Returns the subnet of its newest run."""
    stack = (kit.root / "runs" / kit.name / "latest" / "stack.yaml").read_text()
    return stack.partition("- subnet: ")[2].split()[0]


def placed(swarm: Swarm, kit: Kit) -> dict[str, str]:
    """Returns the nodes of this cluster's running tasks, by task."""
    of_it = ("ps", "--filter", f"label={labels.CLUSTER}={kit.name}", "--format")
    name = f'{{{{.Label "{labels.ROLE}"}}}}-{{{{.Label "{labels.INDEX}"}}}}'
    return {task: node.name for node in swarm.alive for task in node.said(*of_it, name).split()}


def let_hold(swarm: Swarm, node: Node) -> None:
    """Let a node have the tasks whose nodes HOLDS selects."""
    swarm.manager.said("node", "update", "--label-add", HOLDS.replace("==", "="), node.name)


def starts_of(kit: Kit, task: str) -> int:
    """Returns how often a container of this task has been started."""
    path = kit.root / "runs" / kit.name / "latest" / "events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    told = [json.loads(line) for line in lines]
    return sum((one["task"], one["action"]) == (task, "start") for one in told)


def epochs_of(kit: Kit) -> int:
    """Returns the number of epochs that the chief has reported."""
    return max((int(one["epoch"]) for one in told_by(kit, "chief-0") if "epoch" in one), default=0)


def end_of(up: subprocess.Popen[str]) -> str:
    """Returns the output of `up` when it has ended; if it takes too long, it is interrupted."""
    try:
        return up.communicate(timeout=WITHIN_S)[0]
    except subprocess.TimeoutExpired:
        up.send_signal(signal.SIGINT)
        raise AssertionError(f"it has not ended: {up.communicate(timeout=60)[0]}") from None


def told_by(kit: Kit, task: str) -> list[dict[str, Any]]:
    """Returns what a task has written into its progress file."""
    path = kit.root / "runs" / kit.name / "latest" / "output" / "progress" / f"{task}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def wait_for(happened: Callable[[], bool], up: subprocess.Popen[str] | None = None) -> None:
    """Return when `happened` is true; fail if `up` ends before."""
    deadline = time.monotonic() + WITHIN_S
    while not happened():
        if time.monotonic() > deadline:
            raise AssertionError(end_of(up) if up else "it has not happened")
        if up is not None and up.poll() is not None:
            raise AssertionError(f"it has ended ({up.returncode}): {up.communicate()[0]}")
        time.sleep(0.3)
