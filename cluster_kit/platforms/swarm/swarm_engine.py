"""A connection to a swarm's manager."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from docker.errors import APIError, NotFound
from docker.types import ContainerSpec, RestartPolicy, ServiceMode, TaskTemplate
from docker.types import Mount as SdkMount

from cluster_kit import labels
from cluster_kit.errors import EngineError, HostError
from cluster_kit.platforms.docker.docker_connection import as_engine_errors
from cluster_kit.platforms.docker.docker_containers import board_of, of_cluster
from cluster_kit.platforms.docker.docker_engine import DockerConnection, remove_all
from cluster_kit.platforms.engine import (
    Action,
    Container,
    Event,
    PolledLogs,
    Subscription,
    rejoined,
    said_after,
    seconds_of,
    stamped,
)
from cluster_kit.platforms.swarm.swarm_tasks import (
    ENDED,
    HELD,
    Task,
    Told,
    Unreachable,
    by_service,
    container_of,
    exit_code_of,
    has_run,
    refusals,
    state_of,
    with_lost,
)
from cluster_kit.resolved import Mount
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import masked


class SwarmLogs(PolledLogs):
    """The logs of the tasks of a swarm."""

    _client: Any

    def _tasks(self, filters: Any) -> list[Task]:
        return with_lost(self._client.api.tasks(filters=filters), self._client.api.nodes())

    def _of(self, service: str) -> list[Task]:
        """The tasks of one service, oldest first."""
        with as_engine_errors():
            return by_service(self._tasks({"service": service})).get(service, [])

    def _is_over(self, service: str) -> bool:
        tasks = self._of(service)
        return bool(tasks) and state_of(tasks[-1]) in ENDED

    def _lines(self, container_id: str, since: float | None, *, stderr: bool = False) -> list[str]:
        """The lines of all of a service's tasks, oldest task first, each with its time.

        Lines on a lost node are left out.
        """
        wanted: dict[str, Any] = {"stdout": int(not stderr), "stderr": 1, "timestamps": 1}
        wanted |= {} if since is None else {"since": f"{since:.9f}"}
        lines: list[str] = []
        with as_engine_errors():
            service = self._client.api.inspect_service(container_id)
            secrets = container_of(service, ()).secrets
            for task in self._of(container_id):
                with contextlib.suppress(APIError):
                    raw = self._raw_logs(str(task["ID"]), wanted)
                    raw = b"\n".join(map(rejoined, raw.split(b"\n")))
                    text = masked(raw.decode("utf-8", errors="replace"), secrets)
                    lines += stamped(text)
        return said_after(lines, since)

    def _raw_logs(self, task: str, wanted: dict[str, Any]) -> bytes:
        api = self._client.api
        answer = api._get(api._url("/tasks/{0}/logs", task), params=wanted, stream=True)
        api._raise_for_status(answer)
        return bytes(api._get_result_tty(False, answer, False))


PROBE = "cluster-kit.probe"
"""The label of a probe's service and containers, by which they are found."""
PROBE_POLL_S, GONE_S = 0.3, 20.0
FORGOTTEN_S = 600.0
"""Seconds after which a probe is a leftover: the command that created it was killed."""


@dataclass(frozen=True)
class Probe:
    """A probe to run on each node: a shell script, as a user, with these mounts.

    The variable NODE has the node's id.
    """

    name: str
    image: str
    user: str
    script: str
    mounts: tuple[Mount, ...]


@dataclass(frozen=True)
class NodeSaid:
    """The result of a probe on a node: `exit_code` is None if it did not start, and `error` is then
    the reason."""

    node: str
    exit_code: int | None
    error: str = ""


def run_on_each_node(api: Any, probe: Probe, within_s: float) -> list[NodeSaid]:
    """The result of each node that accepts tasks, by node id; nodes without a result are left out.

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
            time.sleep(PROBE_POLL_S)
    finally:
        _remove(api, service, probe)


def _remove_forgotten(api: Any) -> None:
    for service in api.services(filters={"label": PROBE}):
        if time.time() - seconds_of(service["CreatedAt"]) > FORGOTTEN_S:
            with contextlib.suppress(NotFound):  # another command has already done it
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
    """Remove the service, and wait until its tasks are removed and so their containers."""
    with contextlib.suppress(EngineError), as_engine_errors():
        api.remove_service(service)
        deadline = time.monotonic() + GONE_S
        while api.tasks(filters={"label": f"{PROBE}={probe.name}"}):
            if time.monotonic() > deadline:
                return
            time.sleep(PROBE_POLL_S)


POLL_S = 0.5
SOON_S = 0.2
"""Seconds between checks during a removal; a node's agent takes 2 s for each task."""
STOP_S, REMOVE_S = 25.0, 60.0
PARALLEL = 8
INIT = "`docker swarm init --advertise-addr ADDRESS` makes one (127.0.0.1 for this host alone)"


class SwarmEngine(Unreachable, SwarmLogs, DockerConnection):
    """The swarm whose manager answers; `engine.Engine` describes the methods.

    A container's id is that of its service.

    Raises:
        HostError: no engine answers, or it is not a manager of a swarm.
    """

    def __init__(self) -> None:
        super().__init__()
        swarm = self.info().get("Swarm") or {}
        if swarm.get("LocalNodeState") != "active":
            raise HostError("this engine is in no swarm", f"{INIT}, `docker swarm join` joins one")
        if not swarm.get("ControlAvailable"):
            raise HostError("this engine is a worker of its swarm", "run the kit on a manager")

    @as_engine_errors()
    def clusters(self) -> list[str]:
        services = self._services({"label": labels.CLUSTER})
        return sorted({one["Spec"]["Labels"][labels.CLUSTER] for one in services})

    @as_engine_errors()
    def containers(self, cluster: str, run: str = "") -> list[Container]:
        filters = of_cluster(cluster, run)
        services, groups = self._services(filters), by_service(self._tasks(filters))
        containers = [container_of(one, groups.get(one["ID"], ())) for one in services]
        order = {role: position for position, role in enumerate(ROLES)}
        return sorted(containers, key=lambda c: (order.get(c.role, len(order)), c.index))

    def sidecars(self, cluster: str, run: str = "") -> list[Container]:
        return []

    def _services(self, filters: Any) -> list[dict[str, Any]]:
        return list(self._client.api.services(filters=filters))

    @as_engine_errors()
    def node_records(self) -> list[dict[str, Any]]:
        """The output of `docker node inspect` for every node."""
        return list(self._client.api.nodes())

    def run_on_each_node(self, probe: Probe, within_s: float) -> list[NodeSaid]:
        """See `probe.run_on_each_node`."""
        return run_on_each_node(self._client.api, probe, within_s)

    def nodes(self) -> dict[str, str]:
        """Host names of all nodes, by id."""
        return {one["ID"]: one["Description"]["Hostname"] for one in self.node_records()}

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        already, until = Told(), until or Subscription()
        while True:
            with as_engine_errors():
                tasks = self._tasks(of_cluster(cluster, run))
            first = not already.began
            yield from (one for one in already.events(tasks, time.time()) if one.time >= since)
            if first:
                yield Event(time.time(), Action.ALL_TOLD, "", None)
            if until.wait(POLL_S):
                return

    def not_started(self, cluster: str, run: str) -> tuple[list[str], dict[str, str]]:
        """Names of the tasks that have never run, with the reasons that the swarm reports."""
        filters = of_cluster(cluster, run)
        with as_engine_errors():
            services, tasks = self._services(filters), self._tasks(filters)
            ran = {service for service, group in by_service(tasks).items() if has_run(group)}
            waiting = [
                container_of(service, ()).name for service in services if service["ID"] not in ran
            ]
            return waiting, refusals(tasks, self.nodes())

    @as_engine_errors()
    def lacks_subnet(self, cluster: str, run: str) -> bool:
        """Whether the swarm has not given a run's network its subnet."""
        networks = self._client.api.networks(filters=_of_the_swarm(of_cluster(cluster, run)))
        return any(not (one.get("IPAM") or {}).get("Config") for one in networks)

    def comes_back(self, container_id: str, within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if not self._is_over(container_id):
                return True
            time.sleep(POLL_S)
        return False

    def end(self, container_id: str) -> None:
        self._change(container_id, _hold)

    def kill(self, container_id: str) -> None:
        self.end(container_id)

    def start_again(self, container_id: str) -> None:
        self._change(container_id, _release)

    @as_engine_errors()
    def _change(self, service_id: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the template of a service's tasks, so that its task is replaced."""
        api = self._client.api
        service = api.inspect_service(service_id)
        spec = service["Spec"]
        change(spec["TaskTemplate"])
        url = api._url("/services/{0}/update", service_id)
        answer = api._post_json(url, data=spec, params={"version": service["Version"]["Index"]})
        api._raise_for_status(answer)

    def stop(self, cluster: str, run: str = "") -> None:
        running = [c.id for c in self.containers(cluster, run) if c.state != "exited"]
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(self.end, running))
        deadline = time.monotonic() + STOP_S
        while time.monotonic() < deadline and not self._is_quiet(cluster, run):
            time.sleep(SOON_S)

    def _is_quiet(self, cluster: str, run: str) -> bool:
        """Whether no task runs, or is about to."""
        with as_engine_errors():
            groups = by_service(self._tasks(of_cluster(cluster, run)))
        return all(state_of(task) in ENDED for group in groups.values() for task in group)

    @as_engine_errors()
    def remove(self, cluster: str, run: str = "") -> int:
        filters = of_cluster(cluster, run)
        services = self._services(filters)
        remove_all(self._list(board_of(cluster, run)), ())
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(self._remove_service, services))
        deadline = time.monotonic() + REMOVE_S
        while not self._remove_rest(cluster, filters):
            if time.monotonic() > deadline:
                raise EngineError(
                    f"the network of {cluster} is still in use {REMOVE_S:.0f} s after its services",
                    f"`cluster-kit down {cluster} --engine swarm` when the nodes answer again",
                )
            time.sleep(SOON_S)
        return len(services)

    def _remove_service(self, service: dict[str, Any]) -> None:
        with contextlib.suppress(NotFound):
            self._client.api.remove_service(service["ID"])

    def _remove_rest(self, cluster: str, filters: Any) -> bool:
        """Remove networks, configs and secrets; False if they are still in use."""
        api, mine = self._client.api, {"label": f"{labels.CLUSTER}={cluster}"}
        if api.containers(all=True, filters=filters):
            return False
        try:
            for network in api.networks(filters=_of_the_swarm(filters)):
                api.remove_network(network["Id"])
            for config in api.configs(filters=mine):
                api.remove_config(config["ID"])
            for secret in api.secrets(filters=mine):
                api.remove_secret(secret["ID"])
        except NotFound:
            return False
        except APIError as error:
            if "in use" in str(error) or "active endpoints" in str(error):
                return False
            raise
        return True


def _of_the_swarm(filters: dict[str, Any]) -> dict[str, Any]:
    """Only the swarm's networks. A network without a subnet has no driver yet."""
    return {**filters, "scope": "swarm"}


def _hold(template: dict[str, Any]) -> None:
    """Prevent nodes from running the service: its task is stopped, and remains with its log."""
    placement = template.setdefault("Placement", {})
    constraints = [one for one in placement.get("Constraints") or () if one != HELD]
    placement["Constraints"] = [*constraints, HELD]


def _release(template: dict[str, Any]) -> None:
    """Let the service run again, as a new task even if nothing else has changed."""
    placement = template.setdefault("Placement", {})
    placement["Constraints"] = [one for one in placement.get("Constraints") or () if one != HELD]
    template["ForceUpdate"] = template.get("ForceUpdate", 0) + 1
