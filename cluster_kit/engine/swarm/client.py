"""A connection to a swarm's manager: an engine whose containers are on any node."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from docker.errors import APIError, NotFound

from cluster_kit import labels
from cluster_kit.engine.client import DockerEngine
from cluster_kit.engine.containers import ALL_TOLD, Container, Event
from cluster_kit.engine.failures import as_engine_errors
from cluster_kit.engine.found import board_of, of_cluster
from cluster_kit.engine.removal import remove_all
from cluster_kit.engine.subscription import Subscription
from cluster_kit.engine.swarm.logs import SwarmLogs
from cluster_kit.engine.swarm.probe import NodeSaid, Probe, run_on_each_node
from cluster_kit.engine.swarm.starts import has_run, refusals
from cluster_kit.engine.swarm.tasks import (
    ENDED,
    HELD,
    Told,
    by_service,
    container_of,
    state_of,
)
from cluster_kit.engine.swarm.unreachable import Unreachable
from cluster_kit.errors import EngineError, HostError
from cluster_kit.roles import ROLES

POLL_S = 0.5
SOON_S = 0.2
"""Between looks at what is about to be gone; the agent of each node takes 2 s for each task."""
STOP_S, REMOVE_S = 25.0, 60.0
PARALLEL = 8
INIT = "`docker swarm init --advertise-addr ADDRESS` makes one (127.0.0.1 for this host alone)"


class SwarmEngine(Unreachable, SwarmLogs, DockerEngine):
    """The swarm whose manager answers; `interface.Engine` describes the methods.

    A container's id is that of its service.

    Raises:
        HostError: no engine answers, or it is no manager of a swarm.
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
        found = self._services({"label": labels.CLUSTER})
        return sorted({one["Spec"]["Labels"][labels.CLUSTER] for one in found})

    @as_engine_errors()
    def containers(self, cluster: str, run: str = "") -> list[Container]:
        filters = of_cluster(cluster, run)
        services, groups = self._services(filters), by_service(self._tasks(filters))
        found = [container_of(one, groups.get(one["ID"], ())) for one in services]
        order = {role: position for position, role in enumerate(ROLES)}
        return sorted(found, key=lambda c: (order.get(c.role, len(order)), c.index))

    def sidecars(self, cluster: str, run: str = "") -> list[Container]:
        return []

    def _services(self, filters: Any) -> list[dict[str, Any]]:
        return list(self._client.api.services(filters=filters))

    @as_engine_errors()
    def node_records(self) -> list[dict[str, Any]]:
        """What `docker node inspect` shows of every node."""
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
        told, until = Told(), until or Subscription()
        while True:
            with as_engine_errors():
                tasks = self._tasks(of_cluster(cluster, run))
            first = not told.began
            yield from (one for one in told.events(tasks, time.time()) if one.time >= since)
            if first:
                yield Event(time.time(), ALL_TOLD, "", None)
            if until.wait(POLL_S):
                return

    def not_started(self, cluster: str, run: str) -> tuple[list[str], dict[str, str]]:
        """Names of the tasks that have never run, and why, as far as the swarm says so now."""
        filters = of_cluster(cluster, run)
        with as_engine_errors():
            services, tasks = self._services(filters), self._tasks(filters)
            ran = {one for one, group in by_service(tasks).items() if has_run(group)}
            waiting = [container_of(one, ()).name for one in services if one["ID"] not in ran]
            return waiting, refusals(tasks, self.nodes())

    @as_engine_errors()
    def lacks_subnet(self, cluster: str, run: str) -> bool:
        """Whether the swarm has not given a run's network its subnet."""
        found = self._client.api.networks(filters=_of_the_swarm(of_cluster(cluster, run)))
        return any(not (one.get("IPAM") or {}).get("Config") for one in found)

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
        if self._client.containers.list(all=True, filters=filters):
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
    """Only its networks. One that has no subnet yet has no driver either."""
    return {**filters, "scope": "swarm"}


def _hold(template: dict[str, Any]) -> None:
    """Let no node run it: its task is stopped, and stays there with its log."""
    placement = template.setdefault("Placement", {})
    constraints = [one for one in placement.get("Constraints") or () if one != HELD]
    placement["Constraints"] = [*constraints, HELD]


def _release(template: dict[str, Any]) -> None:
    """Let it run again, as a new task even if nothing else has changed."""
    placement = template.setdefault("Placement", {})
    placement["Constraints"] = [one for one in placement.get("Constraints") or () if one != HELD]
    template["ForceUpdate"] = template.get("ForceUpdate", 0) + 1
