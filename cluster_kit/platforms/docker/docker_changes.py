"""What is done to containers: reached into, stopped, removed, and helped by another one."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from docker.errors import APIError, NotFound

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.platforms.docker.docker_containers import of_cluster, user_of
from cluster_kit.platforms.docker.docker_errors import as_engine_errors, first_line
from cluster_kit.platforms.engine import CommandOutput, Helper

_PARALLEL = 8
IN_PROGRESS = "is already in progress"


def stop_all(containers: Iterable[Any]) -> None:
    """Stop the running containers, each with the grace period that the compose file gave it."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(_stop, containers))


def remove_all(containers: Iterable[Any], networks: Iterable[Any]) -> None:
    """Stop and remove containers, then networks; ones that are gone already are ignored.

    Raises:
        EngineError: something else still uses a network.
    """
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(_stop_and_remove, containers))
    for network in networks:
        try:
            network.remove()
        except NotFound:
            continue
        except APIError as error:
            raise EngineError(
                f"network {network.name} cannot be removed: {first_line(error)}",
                f"disconnect what still uses it (docker network inspect {network.name})",
            ) from None


def _stop(container: Any) -> None:
    with contextlib.suppress(NotFound):
        if container.status == "paused":
            with contextlib.suppress(APIError):  # it has been thawed by now, or has ended
                container.unpause()  # frozen processes hear no SIGTERM: they would be killed
        if container.status in ("running", "restarting", "paused"):
            container.stop()


def _stop_and_remove(container: Any) -> None:
    _stop(container)
    with contextlib.suppress(NotFound):
        try:
            container.remove(force=True, v=True)
        except APIError as error:
            if IN_PROGRESS not in str(error):  # a helper is removed by the engine when it ends
                raise


ANSWER_S = 20.0
MEMORY = "256m"


def start_helper(client: Any, cluster: str, helper: Helper) -> str:
    """The first line that it prints, "" if it ends without any, or says nothing for too long."""
    joins = {"pid_mode": f"container:{helper.processes_of}"} if helper.processes_of else {}
    container = client.containers.create(
        helper.image,
        list(helper.command[1:]),
        entrypoint=list(helper.command[:1]),
        labels={labels.HELPER: cluster},
        user="0:0",
        network_mode=f"container:{helper.network_of}" if helper.network_of else "none",
        privileged=helper.privileged,
        cap_drop=[] if helper.privileged else ["ALL"],
        cap_add=list(helper.capabilities),
        security_opt=[] if helper.privileged else ["no-new-privileges:true"],
        working_dir="/",
        read_only=True,
        tmpfs={"/tmp": ""},
        mem_limit=MEMORY,
        auto_remove=True,
        **joins,
    )
    try:
        lines = _lines(container.attach(stream=True, stdout=True, stderr=True))
        container.start()
    except APIError:
        with contextlib.suppress(APIError):
            container.remove(force=True)
        raise
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.append(next(lines, "")), daemon=True)
    reader.start()
    reader.join(ANSWER_S)
    return said[0] if said else ""


def helpers_beside(helpers: Iterable[Any], containers: Iterable[Any]) -> list[Any]:
    """Those of the SDK's containers `helpers` that work on one of `containers`."""
    joined = {f"container:{container.id}" for container in containers}
    return [
        helper
        for helper in helpers
        if joined & {helper.attrs["HostConfig"][key] for key in ("NetworkMode", "PidMode")}
    ]


def _lines(stream: Any) -> Iterator[str]:
    rest = b""
    for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line.decode("utf-8", errors="replace") for line in lines)
    if rest:
        yield rest.decode("utf-8", errors="replace")


MOST_ASKED = 16 << 20
"""Bytes that are read of what a command prints; 16 MB."""
FOR_EXIT_S = 3
"""How much longer than its bound a command is waited for."""
FREEZES, FREEZE_S = 3, 0.3
"""runc gives up freezing a container whose processes start threads at that moment."""


class DockerReaches:
    """The part of the Docker engine that reaches into containers; see `engine.Reaches`."""

    _client: Any

    @as_engine_errors()
    def ask(self, container_id: str, command: Sequence[str], within_s: int) -> CommandOutput:
        bounded = ["timeout", str(within_s), *command]
        container, api = self._client.containers.get(container_id), self._client.api
        begun = api.exec_create(container.id, bounded, **_confined(container.attrs))["Id"]
        printed: list[bytes] = []
        blocks = api.exec_start(begun, stream=True)
        reader = threading.Thread(
            target=lambda: printed.append(_first(blocks, MOST_ASKED)), daemon=True
        )
        reader.start()
        reader.join(within_s + FOR_EXIT_S)  # a program can stop `timeout`, too
        code = api.exec_inspect(begun)["ExitCode"]
        return CommandOutput(b"".join(printed).decode("utf-8", errors="replace"), code)

    @as_engine_errors()
    def execute(self, container_id: str, command: Sequence[str]) -> None:
        container = self._client.containers.get(container_id)
        container.exec_run(list(command), detach=True, **_confined(container.attrs))

    @as_engine_errors()
    def limit_cpus(self, container_id: str, cpus: float) -> None:
        self._update(container_id, {"NanoCpus": round(cpus * 1e9)})

    @as_engine_errors()
    def memory_used(self, container_id: str) -> int:
        told = self._client.api.stats(container_id, stream=False, one_shot=True)
        return int(told["memory_stats"]["usage"])

    @as_engine_errors()
    def limit_memory(self, container_id: str, memory: int, *, swap: bool) -> None:
        both = memory * 2 if swap else memory
        self._update(container_id, {"Memory": memory, "MemorySwap": both})

    @as_engine_errors()
    def freeze(self, container_id: str) -> None:
        for left in reversed(range(FREEZES)):
            try:
                self._client.api.pause(container_id)
            except APIError as error:
                if not left or not error.is_server_error():
                    raise
                time.sleep(FREEZE_S)
            else:
                return

    @as_engine_errors()
    def thaw(self, container_id: str) -> None:
        self._client.api.unpause(container_id)

    @as_engine_errors()
    def start_helper(self, cluster: str, chosen: Helper) -> str:
        return start_helper(self._client, cluster, chosen)

    @as_engine_errors()
    def attach(self, container_id: str, cluster: str, task: str, ip: str) -> None:
        for network in self._client.networks.list(filters=of_cluster(cluster)):
            network.connect(container_id, ipv4_address=ip, aliases=[task])

    @as_engine_errors()
    def detach(self, container_id: str, cluster: str) -> None:
        for network in self._client.networks.list(filters=of_cluster(cluster)):
            network.disconnect(container_id)

    def _update(self, container_id: str, limits: Mapping[str, int]) -> None:
        # The SDK's `update` knows only quotas, which the engine refuses beside a limit in cores.
        api = self._client.api
        url = api._url("/containers/{0}/update", container_id)
        api._raise_for_status(api._post_json(url, data=dict(limits)))


def _confined(attributes: Mapping[str, Any]) -> dict[str, str]:
    """How a command is run in a container: as its task, and where the task can put no file."""
    return {"user": user_of(attributes), "workdir": "/"}


def _first(blocks: Iterator[bytes], most: int) -> bytes:
    """Returns the first `most` bytes of a stream; the rest is not read."""
    found = b""
    for block in blocks:
        found += block
        if len(found) >= most:
            break
    return found[:most]
