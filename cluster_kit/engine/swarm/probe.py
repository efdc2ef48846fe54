"""A container on every node of a swarm at once, to see what is there; all are removed again."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

from docker.errors import NotFound
from docker.types import ContainerSpec, RestartPolicy, ServiceMode, TaskTemplate
from docker.types import Mount as SdkMount

from cluster_kit.engine.containers import seconds_of
from cluster_kit.engine.failures import as_engine_errors
from cluster_kit.engine.swarm.tasks import ENDED, Task, exit_code_of, state_of
from cluster_kit.errors import EngineError
from cluster_kit.parts import Mount

PROBE = "cluster-kit.probe"
"""The label of its service, and of its containers: one is looked for by that when that is gone."""
POLL_S, GONE_S = 0.3, 20.0
FORGOTTEN_S = 600.0
"""From this age on nobody waits for a probe any more: what has made it was ended in the middle."""


@dataclass(frozen=True)
class Probe:
    """What to run on each node: a shell's script, as a user, with these mounts.

    `NODE` is the node's id there.
    """

    name: str
    image: str
    user: str
    script: str
    mounts: tuple[Mount, ...]


@dataclass(frozen=True)
class NodeSaid:
    """How it ended on a node: `exit_code` is None if it did not start, `error` then why."""

    node: str
    exit_code: int | None
    error: str = ""


def run_on_each_node(api: Any, probe: Probe, within_s: float) -> list[NodeSaid]:
    """What each node that is given tasks says, by node ids; without those that say nothing.

    Raises:
        EngineError: the swarm refuses, or does not answer.
    """
    with as_engine_errors():
        _remove_forgotten(api)
        service = api.create_service(
            _template(probe), name=probe.name, mode=ServiceMode("global"), labels={PROBE: ""}
        )["ID"]
    try:
        deadline = time.monotonic() + within_s
        while True:
            with as_engine_errors():
                tasks = [t for t in api.tasks(filters={"service": service}) if t.get("NodeID")]
            over = [task for task in tasks if state_of(task) in ENDED]
            if (tasks and len(over) == len(tasks)) or time.monotonic() > deadline:
                return sorted((_said(task) for task in over), key=lambda said: said.node)
            time.sleep(POLL_S)
    finally:
        _remove(api, service, probe)


def _remove_forgotten(api: Any) -> None:
    for service in api.services(filters={"label": PROBE}):
        if time.time() - seconds_of(service["CreatedAt"]) > FORGOTTEN_S:
            with contextlib.suppress(NotFound):  # another command has done it by now
                api.remove_service(service["ID"])


def _template(probe: Probe) -> Any:
    container = ContainerSpec(
        probe.image,
        command=["sh", "-c", probe.script],
        user=probe.user,
        env=["NODE={{.Node.ID}}"],
        labels={PROBE: probe.name},
        mounts=[SdkMount(m.target, m.source, "bind", m.read_only) for m in probe.mounts],
    )
    return TaskTemplate(container, restart_policy=RestartPolicy("none"), networks=["host"])


def _said(task: Task) -> NodeSaid:
    code = None if state_of(task) == "rejected" else exit_code_of(task)
    return NodeSaid(str(task["NodeID"]), code, str(task["Status"].get("Err", "")))


def _remove(api: Any, service: str, probe: Probe) -> None:
    """Remove the service, and wait until its tasks are gone: nodes then remove the containers."""
    with contextlib.suppress(EngineError), as_engine_errors():
        api.remove_service(service)
        deadline = time.monotonic() + GONE_S
        while api.tasks(filters={"label": f"{PROBE}={probe.name}"}):
            if time.monotonic() > deadline:
                return
            time.sleep(POLL_S)
