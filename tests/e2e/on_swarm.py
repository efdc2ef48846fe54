"""Clusters on a swarm of the tests' own: started, watched, and nothing left."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster_kit.image.build import image_tag
from tests.e2e.nodes import Swarm
from tests.kit import Kit, new_kit

WITHIN_S = 300
MANAGER, BESIDE, OTHERS = "node.role==manager", "node.hostname==node-1", "node.role!=manager"
IMAGES = {image_tag("cpu"): image_tag("cpu")}


def nothing_is_left(swarm: Swarm) -> None:
    """Fail if a service, a container or a network is left on any node."""
    for listed in (("service", "ls"), ("config", "ls"), ("secret", "ls")):
        assert swarm.manager.said(*listed, "-q") == "", listed
    for node in swarm.alive:
        wait_for(lambda node=node: node.said("ps", "-aq") == "")
        assert "cluster-kit" not in node.said("network", "ls")


def started_with(swarm: Swarm, tmp_path: Path, **where: str) -> Kit:
    """A workspace for this swarm, whose manifest is the quickstart with these nodes for roles."""
    kit = new_kit(tmp_path / "ws", "dies", DOCKER_HOST=swarm.manager.host)
    change(kit, **where)
    return kit


def change(kit: Kit, **where: str) -> None:
    """Give the quickstart this cluster's name, and each role its nodes."""
    text = (kit.root / "compose" / "quickstart.toml").read_text()
    more = "".join(f'[role.{role}]\nnodes = "{chosen}"\n' for role, chosen in where.items())
    named = text.replace('name = "quickstart"', f'name = "{kit.name}"\nengine = "swarm"')
    (kit.root / "compose" / f"{kit.name}.toml").write_text(named + more)


def epochs_of(kit: Kit) -> int:
    """How many epochs the chief has told of."""
    return max((int(one["epoch"]) for one in told_by(kit, "chief-0") if "epoch" in one), default=0)


def end_of(up: subprocess.Popen[str]) -> str:
    """What it has said when it has ended; one that takes too long is interrupted."""
    try:
        return up.communicate(timeout=WITHIN_S)[0]
    except subprocess.TimeoutExpired:
        up.send_signal(signal.SIGINT)
        raise AssertionError(f"it has not ended: {up.communicate(timeout=60)[0]}") from None


def told_by(kit: Kit, task: str) -> list[dict[str, Any]]:
    """What a task has written of its progress."""
    path = kit.root / "runs" / kit.name / "latest" / "output" / "progress" / f"{task}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def wait_for(happened: Callable[[], bool], up: subprocess.Popen[str] | None = None) -> None:
    """Return when it has happened; fail if `up` ends before."""
    deadline = time.monotonic() + WITHIN_S
    while not happened():
        if time.monotonic() > deadline:
            raise AssertionError(end_of(up) if up else "it has not happened")
        if up is not None and up.poll() is not None:
            raise AssertionError(f"it has ended ({up.returncode}): {up.communicate()[0]}")
        time.sleep(0.3)
