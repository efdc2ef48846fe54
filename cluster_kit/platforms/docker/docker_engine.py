"""A connection to the Docker engine: finds, watches, reads and removes containers and networks.

Everything is found by the kit's labels; nothing without them is ever touched.
"""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from docker import DockerClient
from docker.errors import APIError, DockerException, NotFound
from docker.types import DeviceRequest

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.platforms.docker import docker_changes
from cluster_kit.platforms.docker.docker_address import address, caller, engine_kind, sdk
from cluster_kit.platforms.docker.docker_changes import DockerReaches, remove_all, stop_all
from cluster_kit.platforms.docker.docker_containers import (
    Filters,
    board_of,
    container_of,
    event_of,
    of_a_swarm,
    of_cluster,
    reserved_by_others,
    reserved_gpus,
    secrets_of,
    summary_of,
)
from cluster_kit.platforms.docker.docker_errors import as_engine_errors, first_line, no_engine
from cluster_kit.platforms.engine import (
    SIDECAR,
    Container,
    ContainerSummary,
    Engine,
    Event,
    Subscription,
)
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import LEFT_OUT, masker

_NO_PROGRAM = "/none"


def refusal(client: DockerClient, driver: str, device_id: str) -> str:
    """The engine's error for a container with this GPU, "" if it hands it out.

    The container's image is empty: if the engine grants the GPU, the start fails later, because
    there is no program. The image has no name, so that two probes at once do not share it.
    """
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    image = json.loads(client.api.import_image_from_data(empty.getvalue()))["status"]
    try:
        return _start_fails(client, image, driver, device_id)
    finally:
        client.images.remove(image, force=True)


def _start_fails(client: DockerClient, image: str, driver: str, device_id: str) -> str:
    request = DeviceRequest(driver=driver, device_ids=[device_id], capabilities=[["gpu"]])
    probe = client.containers.create(
        image, [_NO_PROGRAM], device_requests=[request], network_disabled=True
    )
    try:
        probe.start()
    except APIError as error:
        message = first_line(error)
        return "" if _NO_PROGRAM in message else message
    finally:
        probe.remove(force=True)
    return ""


LONGEST_LINE = 1 << 20
"""Bytes; what a longer line has beyond that is left out, which LEFT_OUT at its end says."""
_HEADER = 8
"""Bytes before each message: one for the stream, three that mean nothing, four for its length."""


def payloads(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields what was printed, without the headers that the engine puts before each message.

    See "Stream format" of `POST /containers/{id}/attach` in Docker's API.
    """
    rest = b""
    for block in blocks:
        data, at, found = rest + block, 0, []
        while at + _HEADER <= len(data):
            end = at + _HEADER + int.from_bytes(data[at + 4 : at + _HEADER], "big")
            if end > len(data):
                break
            found.append(data[at + _HEADER : end])
            at = end
        rest = data[at:]
        if found:
            yield b"".join(found)


def lines_of(blocks: Iterable[bytes]) -> Iterator[list[str]]:
    """Yields the lines of each block that end in it, without their ends; at last what has none."""
    rest, is_cut = b"", False
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        if lines and is_cut:
            is_cut = False
            del lines[0]
        if is_cut:
            rest = b""
        elif len(rest) > LONGEST_LINE:
            lines.append(rest)
            rest, is_cut = b"", True
        if lines:
            yield [_text(line) for line in lines]
    if rest and not is_cut:
        yield [_text(rest)]


def _text(line: bytes) -> str:
    shown = line[:LONGEST_LINE].decode("utf-8", errors="replace")
    # The cut may be within a character.
    return shown if len(line) <= LONGEST_LINE else shown.rstrip("\ufffd") + LEFT_OUT


TIMEOUT_S, ANSWER_S = 60, 3
CONNECTIONS = 32
POLL_S = 0.2
CONFLICT = 409
LOG_BLOCK = 1 << 20
"""Bytes that are read of a log at once."""


def connect() -> Engine:
    """The engine that DOCKER_HOST names, or the one of this machine.

    Raises:
        HostError: no engine answers.
    """
    return DockerEngine()


class DockerConnection:
    """What a Docker engine and a swarm's manager are asked; `engine.Engine` describes the methods.

    Raises:
        HostError: no engine answers.
    """

    def __init__(self) -> None:
        try:
            self._client = sdk(timeout=TIMEOUT_S, max_pool_size=CONNECTIONS)
            self._client.ping()
        except (DockerException, OSError) as error:
            raise no_engine(error) from None

    def answers(self) -> bool:
        try:
            with as_engine_errors(), contextlib.closing(sdk(timeout=ANSWER_S)) as asked:
                return bool(asked.ping())
        except EngineError:
            return False

    def close(self) -> None:
        self._client.close()

    @as_engine_errors()
    def info(self) -> dict[str, Any]:
        facts: dict[str, Any] = self._client.info()
        return facts

    @as_engine_errors()
    def identity(self) -> str:
        return str(self._client.info().get("ID", ""))

    @as_engine_errors()
    def networks(self) -> list[tuple[str, str, str]]:
        return [
            (network.name, cluster, config["Subnet"])
            for network in self._client.networks.list()
            for cluster in [(network.attrs.get("Labels") or {}).get(labels.CLUSTER, "")]
            for config in (network.attrs.get("IPAM") or {}).get("Config") or []
            if ":" not in config.get("Subnet", ":")
        ]

    @as_engine_errors()
    def clusters(self) -> list[str]:
        names = {c.labels[labels.CLUSTER] for c in self._list({"label": labels.CLUSTER})}
        names |= {n.attrs["Labels"][labels.CLUSTER] for n in self._networks(labels.CLUSTER)}
        return sorted(names)

    @as_engine_errors()
    def containers(self, cluster: str, run: str = "") -> list[Container]:
        containers = [container_of(c.attrs) for c in self._list(of_cluster(cluster, run))]
        containers = [c for c in containers if c.role != SIDECAR]
        order = {role: position for position, role in enumerate(ROLES)}
        return sorted(containers, key=lambda c: (order.get(c.role, len(order)), c.index))

    @as_engine_errors()
    def sidecars(self, cluster: str, run: str = "") -> list[Container]:
        found = [container_of(c.attrs) for c in self._list(of_cluster(cluster, run))]
        return sorted((c for c in found if c.role == SIDECAR), key=lambda c: c.name)

    @as_engine_errors()
    def glance(self) -> list[ContainerSummary]:
        listed = self._client.api.containers(all=True, filters={"label": labels.CLUSTER})
        return [summary_of(one) for one in listed]

    def _networks(self, label: str | list[str]) -> list[Any]:
        found = self._client.networks.list(filters={"label": label})
        return [one for one in found if one.attrs.get("Scope") != "swarm"]

    def _list(self, filters: Filters) -> list[Any]:
        while True:
            # A container that is removed between the list and its inspection answers 404.
            with contextlib.suppress(NotFound):
                found: list[Any] = self._client.containers.list(all=True, filters=filters)
                return [one for one in found if not of_a_swarm(one.attrs)]

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        filters = {"type": "container", **of_cluster(cluster, run)}
        with as_engine_errors():
            messages = self._client.events(decode=True, since=since, filters=filters)

            def close() -> None:
                # AttributeError: it has ended by itself. DockerException: it cannot, through ssh.
                with contextlib.suppress(AttributeError, DockerException, OSError):
                    messages.close()

            (until or Subscription()).ends_by(close)
            for message in messages:
                event = event_of(message)
                if event is not None:
                    yield event

    @as_engine_errors()
    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (device, container.labels[labels.CLUSTER])
            for container in self._list({"label": labels.CLUSTER})
            if container.status not in ("exited", "dead")
            for device in reserved_gpus(container.attrs)
        )

    @as_engine_errors()
    def gpus_reserved(self) -> tuple[tuple[str, str], ...]:
        return reserved_by_others(c.attrs for c in self._list({"status": "running"}))

    @as_engine_errors()
    def gpu_refusal(self, driver: str, device_id: str) -> str:
        return refusal(self._client, driver, device_id)

    def lines(self, container_id: str, *, stderr: bool = False) -> Iterator[str]:
        wanted = {"stdout": int(not stderr), "stderr": 1, "timestamps": 1}
        with as_engine_errors():
            api = self._client.api
            attributes = api.inspect_container(container_id)
            url = api._url("/containers/{0}/logs", container_id)
            with contextlib.closing(api._get(url, params=wanted, stream=True)) as answer:
                api._raise_for_status(answer)
                blocks: Iterator[bytes] = answer.iter_content(LOG_BLOCK)
                if not attributes["Config"].get("Tty"):
                    blocks = payloads(blocks)
                yield from _masked_lines(blocks, attributes)

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        with as_engine_errors():
            container = self._client.containers.get(container_id)
            blocks = container.logs(stream=True, follow=True, since=since, timestamps=times)
            yield from _masked_lines(blocks, container.attrs)

    @as_engine_errors()
    def comes_back(self, container_id: str, within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            try:
                if self._client.containers.get(container_id).status == "running":
                    return True
            except NotFound:
                return False
            time.sleep(POLL_S)
        return False

    @as_engine_errors()
    def kill(self, container_id: str) -> None:
        container = self._client.containers.get(container_id)
        try:
            container.kill()
        except APIError as error:
            if error.status_code != CONFLICT:  # it has ended
                raise

    @as_engine_errors()
    def start_again(self, container_id: str) -> None:
        self._client.containers.get(container_id).start()

    @as_engine_errors()
    def end(self, container_id: str) -> None:
        stop_all([self._client.containers.get(container_id)])

    @as_engine_errors()
    def stop(self, cluster: str, run: str = "") -> None:
        stop_all(self._list(of_cluster(cluster, run)))

    @as_engine_errors()
    def remove(self, cluster: str, run: str = "") -> int:
        containers = self._list(of_cluster(cluster, run))
        helpers = self._list({"label": [f"{labels.HELPER}={cluster}"]})
        beside = docker_changes.helpers_beside(helpers, containers) if run else helpers
        boards = self._list(board_of(cluster, run))
        networks = self._networks(of_cluster(cluster, run)["label"])
        remove_all([*beside, *boards, *containers], networks)
        return len(containers)


class DockerEngine(DockerReaches, DockerConnection):
    """The Docker engine of this machine, which reaches into its containers."""


def _masked_lines(blocks: Iterable[bytes], attributes: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a log without the values of its container's secrets."""
    mask = masker(secrets_of(attributes))
    for lines in lines_of(blocks):
        yield from map(mask, lines)


def caller_of(connect: Callable[[], Engine]) -> str:
    """`uid:gid` that is the caller in a container of the engine that is connected to.

    Raises:
        HostError: no engine answers.
        EngineError: it stopped answering.
    """
    with contextlib.closing(connect()) as engine:
        return caller(engine_kind(engine.info(), address()))
