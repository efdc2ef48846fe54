"""The docker SDK's one home for everything about running clusters: find, watch, read, remove.

Everything is found by our labels; what does not carry them is never touched.
"""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.types import DeviceRequest

from cluster_kit import labels
from cluster_kit.errors import EngineError, HostError

GRACE_S = 10
"""As stop_grace_period of the compose file: a program that saves has 8 s for it."""
_PARALLEL = 8


@dataclass(frozen=True)
class Container:
    """A task's container as the engine sees it now.

    `exit_code` is None while it runs or before it started; `started` and `finished` are the
    engine's own RFC 3339 times; `output` is the host's directory mounted at /output.
    """

    id: str
    cluster: str
    name: str
    role: str
    index: int
    leader: bool
    ip: str
    gpus: tuple[str, ...]
    state: str
    exit_code: int | None
    restarts: int
    oom: bool
    error: str
    started: str
    finished: str
    output: str


@dataclass(frozen=True)
class Event:
    """Something that happened to a task: `start`, `die`, `oom`, `kill`, … at Unix `time`."""

    time: float
    action: str
    task: str
    exit_code: int | None


class Engine:
    """A connection to the Docker engine.

    Raises:
        HostError: no engine answers.
    """

    def __init__(self) -> None:
        try:
            self._client = docker.from_env(timeout=60, max_pool_size=32)
            self._client.ping()
        except DockerException as error:
            raise HostError(
                f"no Docker engine answers: {_first_line(error)}",
                "run `make engine` (it installs or starts one where it can)",
            ) from None

    def close(self) -> None:
        self._client.close()

    def info(self) -> dict[str, Any]:
        """`docker info`."""
        found: dict[str, Any] = self._client.info()
        return found

    def networks(self) -> list[tuple[str, str, str]]:
        """(name, cluster or "", CIDR) of every IPv4 subnet of every Docker network."""
        found = []
        for network in self._client.networks.list():
            cluster = (network.attrs.get("Labels") or {}).get(labels.CLUSTER, "")
            for config in (network.attrs.get("IPAM") or {}).get("Config") or []:
                if ":" not in config.get("Subnet", ":"):
                    found.append((network.name, cluster, config["Subnet"]))
        return found

    def clusters(self) -> list[str]:
        """Names of all clusters that have a container or a network."""
        kept = {"label": labels.CLUSTER}
        names = {c.labels[labels.CLUSTER] for c in self._list(kept)}
        names |= {cluster for _, cluster, _ in self.networks() if cluster}
        return sorted(names)

    def containers(self, cluster: str) -> list[Container]:
        """All task containers of a cluster, in task order, running or not."""
        found = [_container(c.attrs) for c in self._list(_of(cluster))]
        order = {"chief": 0, "worker": 1, "ps": 2, "evaluator": 3}
        return sorted(found, key=lambda c: (order.get(c.role, 9), c.index))

    def _list(self, filters: dict[str, str]) -> list[Any]:
        while True:
            # A container that is removed between the list and its inspection answers 404.
            with contextlib.suppress(NotFound):
                found: list[Any] = self._client.containers.list(all=True, filters=filters)
                return found

    def events(self, cluster: str, since: float) -> Iterator[Event]:
        """Events of a cluster's containers from Unix time `since`, live, until `close`."""
        stream = self._client.events(
            decode=True,
            since=since,
            filters={"type": "container", **_of(cluster)},
        )
        for raw in stream:
            if raw.get("Action", "").startswith("exec_"):
                continue
            attributes = raw.get("Actor", {}).get("Attributes", {})
            code = attributes.get("exitCode")
            yield Event(
                time=raw.get("timeNano", 0) / 1e9,
                action=raw.get("Action", ""),
                task=f"{attributes.get(labels.ROLE)}-{attributes.get(labels.INDEX)}",
                exit_code=int(code) if code is not None else None,
            )

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        """(device id, cluster) of every GPU that a container of ours holds or is about to."""
        return tuple(
            (device, container.labels[labels.CLUSTER])
            for container in self._list({"label": labels.CLUSTER})
            if container.status not in ("exited", "dead")
            for device in _devices(container.attrs)
        )

    def gpu_refusal(self, driver: str, device_id: str) -> str:
        """Why the engine cannot hand out this GPU, "" where it can.

        `docker info` does not tell; creating and starting a container does. Its image is empty, so
        that where the GPU is handed out the start fails later, for want of a program. The image
        has no name: two probes at once would take it from each other.
        """
        empty = io.BytesIO()
        tarfile.open(fileobj=empty, mode="w").close()
        image = json.loads(self._client.api.import_image_from_data(empty.getvalue()))["status"]
        try:
            return self._start_fails(image, driver, device_id)
        finally:
            self._client.images.remove(image, force=True)

    def _start_fails(self, image: str, driver: str, device_id: str) -> str:
        """What the engine says when a container with this GPU starts, "" for lack of a program."""
        request = DeviceRequest(driver=driver, device_ids=[device_id], capabilities=[["gpu"]])
        probe = self._client.containers.create(
            image, ["/none"], device_requests=[request], network_disabled=True
        )
        try:
            probe.start()
        except APIError as error:
            said = _first_line(error)
            return "" if "/none" in said else said
        finally:
            probe.remove(force=True)
        return ""

    def logs(self, container_id: str, tail: int | None = None) -> str:
        """What a container said, stdout and stderr in order, times in front."""
        raw = self._client.containers.get(container_id).logs(
            timestamps=True, tail="all" if tail is None else tail
        )
        return bytes(raw).decode("utf-8", errors="replace")

    def comes_back(self, container_id: str, within_s: float) -> bool:
        """Whether an ended container runs again within so many seconds."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            try:
                if self._client.containers.get(container_id).status == "running":
                    return True
            except NotFound:
                return False
            time.sleep(0.2)
        return False

    def follow(self, container_id: str, since: float | None = None) -> Iterator[str]:
        """Lines of a container as they come, until it ends."""
        stream = self._client.containers.get(container_id).logs(
            stream=True, follow=True, since=since
        )
        rest = b""
        for chunk in stream:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", errors="replace")
        if rest:
            yield rest.decode("utf-8", errors="replace")

    def start_again(self, container_id: str) -> None:
        """Start an ended container once more."""
        self._client.containers.get(container_id).start()

    def kill(self, container_id: str) -> None:
        """SIGKILL; nothing where it has ended already."""
        with contextlib.suppress(APIError):
            self._client.containers.get(container_id).kill()

    def stop(self, cluster: str) -> None:
        """Stop all containers of a cluster that still run, all at once."""
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(_stop, self._list(_of(cluster))))

    def remove(self, cluster: str) -> int:
        """Stop and remove every container and network of a cluster; returns how many containers.

        All at once: an engine removes faster from several threads than Compose asks for.
        """
        containers = self._list(_of(cluster))
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(_stop_and_remove, containers))
        for network in self._client.networks.list(filters=_of(cluster)):
            try:
                network.remove()
            except NotFound:
                continue
            except APIError as error:
                raise EngineError(
                    f"network {network.name} cannot be removed: {_first_line(error)}",
                    f"disconnect what still uses it (docker network inspect {network.name})",
                ) from None
        return len(containers)


def _of(cluster: str) -> dict[str, str]:
    """The engine's filter for what belongs to a cluster."""
    return {"label": f"{labels.CLUSTER}={cluster}"}


def _stop(container: Any) -> None:
    with contextlib.suppress(NotFound):
        if container.status in ("running", "restarting", "paused"):
            container.stop(timeout=GRACE_S)


def _stop_and_remove(container: Any) -> None:
    _stop(container)
    with contextlib.suppress(NotFound):
        container.remove(force=True, v=True)


def _container(attrs: dict[str, Any]) -> Container:
    state, marks = attrs["State"], attrs["Config"]["Labels"]
    networks = attrs["NetworkSettings"]["Networks"].values()
    configured = [(n.get("IPAMConfig") or {}).get("IPv4Address") for n in networks]
    running = state["Running"] or state["Status"] == "created"
    return Container(
        id=attrs["Id"],
        cluster=marks[labels.CLUSTER],
        name=f"{marks[labels.ROLE]}-{marks[labels.INDEX]}",
        role=marks[labels.ROLE],
        index=int(marks[labels.INDEX]),
        leader=marks.get(labels.LEADER) == "true",
        ip=next((ip for ip in configured if ip), ""),
        gpus=_devices(attrs),
        state=state["Status"],
        exit_code=None if running else state["ExitCode"],
        restarts=attrs["RestartCount"],
        oom=state["OOMKilled"],
        error=state.get("Error", ""),
        started=state["StartedAt"],
        finished=state["FinishedAt"],
        output=next((m["Source"] for m in attrs["Mounts"] if m["Destination"] == "/output"), ""),
    )


def _devices(attrs: dict[str, Any]) -> tuple[str, ...]:
    """The GPUs that the engine really reserved, not those that somebody asked for."""
    requests = attrs["HostConfig"].get("DeviceRequests") or []
    return tuple(device for request in requests for device in request.get("DeviceIDs") or [])


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
