"""A connection to the Docker engine: finds, watches, reads and removes containers and networks.

Containers and networks are found by the kit's labels; those without these labels are never touched.
"""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from docker import DockerClient
from docker.errors import APIError, DockerException, NotFound
from docker.types import DeviceRequest

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.platforms.docker.docker_connection import (
    address,
    as_engine_errors,
    caller,
    engine_kind,
    first_line,
    no_engine,
    sdk,
)
from cluster_kit.platforms.docker.docker_containers import (
    Filters,
    board_of,
    container_of,
    event_of,
    has_service,
    of_a_swarm,
    of_cluster,
    reserved_by_others,
    reserved_gpus,
    secrets_of,
    sidecars_of,
    user_of,
)
from cluster_kit.platforms.docker.docker_socket import summary_of
from cluster_kit.platforms.engine import (
    SIDECAR,
    Action,
    CommandOutput,
    Container,
    ContainerSummary,
    Engine,
    Event,
    Helper,
    Subscription,
    rejoined,
)
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import LEFT_OUT, masker

_PARALLEL = 8
IN_PROGRESS = "is already in progress"
CPU_SHARES = 1024
"""The weight of a container for which none is given."""


def stop_all(containers: Iterable[Any]) -> None:
    """Stop the running containers, each with the grace period that the compose file gave it."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(_stop, containers))


def remove_all(containers: Iterable[Any], networks: Iterable[Any]) -> None:
    """Stop and remove containers, then networks; missing ones are ignored.

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
            users = _users(network)
            why = f"still used by {', '.join(users)}" if users else first_line(error)
            commands = [f"docker network disconnect {network.name} {user}" for user in users]
            command = " && ".join(commands) or f"docker network inspect {network.name}"
            raise EngineError(
                f"network {network.name} cannot be removed: {why}",
                f"disconnect what still uses it: `{command}`",
            ) from None


def _users(network: Any) -> list[str]:
    """The names of the containers that are on a network; [] if the engine does not say."""
    with contextlib.suppress(APIError):
        network.reload()
        return sorted(one["Name"] for one in (network.attrs.get("Containers") or {}).values())
    return []


def _stop(container: Any) -> None:
    with contextlib.suppress(NotFound):
        if container.status == "paused":
            with contextlib.suppress(APIError):  # it was already thawed, or has ended
                container.unpause()  # frozen processes do not receive SIGTERM: they would be killed
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


HELPER_ANSWER_S = 20.0
MEMORY = "256m"


def start_helper(client: Any, cluster: str, helper: Helper) -> str:
    """Start a helper; returns the first line that it prints, or "" if it prints none in time."""
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
    printed: list[str] = []
    reader = threading.Thread(target=lambda: printed.append(next(lines, "")), daemon=True)
    reader.start()
    reader.join(HELPER_ANSWER_S)
    return printed[0] if printed else ""


def helpers_beside(helpers: Iterable[Any], containers: Iterable[Any]) -> list[Any]:
    """Returns the helpers that share a network or process namespace with one of `containers`."""
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


MOST_ASKED = 4 << 20
"""The maximum bytes that are read of a command's output; the task can write to it, too."""
FOR_EXIT_S = 3
"""The additional time that the kit waits for a command after its time limit."""
FREEZES, FREEZE_S = 3, 0.3
"""Attempts to freeze a container, and the pause between them: runc fails if processes of the
container start threads at that moment."""


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
    def weigh_as_usual(self, container_id: str) -> None:
        self._update(container_id, {"CpuShares": CPU_SHARES})

    @as_engine_errors()
    def memory_used(self, container_id: str) -> int:
        stats = self._client.api.stats(container_id, stream=False, one_shot=True)
        return int(stats["memory_stats"]["usage"])

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
        # The SDK's `update` supports only quotas, which the engine refuses if a limit in cores is
        # set.
        api = self._client.api
        url = api._url("/containers/{0}/update", container_id)
        api._raise_for_status(api._post_json(url, data=dict(limits)))


def _confined(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Returns the options for a command in a container: the task's user, and a directory to which
    the task cannot write."""
    return {"user": user_of(attributes), "workdir": "/"}


def _first(blocks: Iterator[bytes], most: int) -> bytes:
    """Returns the first `most` bytes of a stream; the rest is not read."""
    line = bytearray()
    for block in blocks:
        line += block
        if len(line) >= most:
            break
    return bytes(line[:most])


_NO_PROGRAM = "/none"


def refusal(client: DockerClient, driver: str, device_id: str) -> str:
    """The engine's error for a container with this GPU; "" if the engine provides it.

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
"""The maximum bytes of a line; a longer one is truncated, and LEFT_OUT is appended."""
_HEADER = 8
"""Length of a message's header: one byte for the stream, three unused bytes, four for the length
of the message."""


def payloads(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the printed bytes, without the header that the engine puts before each message.

    See "Stream format" of `POST /containers/{id}/attach` in Docker's API.
    """
    rest = b""
    for block in blocks:
        data, at, frames = rest + block, 0, []
        while at + _HEADER <= len(data):
            end = at + _HEADER + int.from_bytes(data[at + 4 : at + _HEADER], "big")
            if end > len(data):
                break
            frames.append(data[at + _HEADER : end])
            at = end
        rest = data[at:]
        if frames:
            yield b"".join(frames)


def lines_of(blocks: Iterable[bytes]) -> Iterator[list[str]]:
    """Yields, for each block, the lines that end in it, without line ends.

    The last list has the rest after the last line end, if there is any.
    """
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
    line = rejoined(line)
    shown = line[:LONGEST_LINE].decode("utf-8", errors="replace")
    # The cut may be within a character.
    return shown if len(line) <= LONGEST_LINE else shown.rstrip("\ufffd") + LEFT_OUT


TIMEOUT_S, ANSWER_S = 60, 3
CONNECTIONS = 32
POLL_S = 0.2
MOST_OOMS = 200
"""The maximum number of out-of-memory events that are passed on between two starts of a task: a
program can cause any number of them."""
CONFLICT = 409
LOG_BLOCK = 1 << 20
"""The number of bytes of a log that are read at once."""


def connect() -> Engine:
    """Returns a connection to the engine that DOCKER_HOST names, or to this machine's engine.

    Raises:
        HostError: no engine answers.
    """
    return DockerEngine()


class DockerConnection:
    """The methods that a Docker engine and a swarm's manager share; `engine.Engine` describes them.

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
            with as_engine_errors(), contextlib.closing(sdk(timeout=ANSWER_S)) as client:
                return bool(client.ping())
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
        listed = self._client.api.containers(all=True, filters={"label": labels.CLUSTER})
        names = {c["Labels"][labels.CLUSTER] for c in listed if not has_service(c["Labels"])}
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
        containers = [container_of(c.attrs) for c in self._list(sidecars_of(cluster, run))]
        return sorted(containers, key=lambda c: c.name)

    @as_engine_errors()
    def glance(self) -> list[ContainerSummary]:
        listed = self._client.api.containers(all=True, filters={"label": labels.CLUSTER})
        return [summary_of(container) for container in listed]

    def _networks(self, label: str | list[str]) -> list[Any]:
        networks = self._client.networks.list(filters={"label": label})
        return [network for network in networks if network.attrs.get("Scope") != "swarm"]

    def _list(self, filters: Filters) -> list[Any]:
        while True:
            # A container that is removed between the list and its inspection answers 404.
            with contextlib.suppress(NotFound):
                containers: list[Any] = self._client.containers.list(all=True, filters=filters)
                return [c for c in containers if not of_a_swarm(c.attrs)]

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        filters = {"type": "container", **of_cluster(cluster, run)}
        with as_engine_errors():
            messages = self._client.events(decode=True, since=since, filters=filters)

            def close() -> None:
                # AttributeError: the stream has already ended. DockerException: a stream through
                # ssh cannot be closed.
                with contextlib.suppress(AttributeError, DockerException, OSError):
                    messages.close()

            (until or Subscription()).ends_by(close)
            ooms = Counter[str]()
            for message in messages:
                event = event_of(message)
                if event is None:
                    continue
                if event.action == Action.START:
                    ooms[event.task] = 0
                ooms[event.task] += event.action == Action.OOM
                if event.action != Action.OOM or ooms[event.task] <= MOST_OOMS:
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
            if error.status_code != CONFLICT:  # the container has already ended
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
        helpers = helpers_beside(helpers, containers) if run else helpers
        boards = self._list(board_of(cluster, run))
        networks = self._networks(of_cluster(cluster, run)["label"])
        remove_all([*helpers, *boards, *containers], networks)
        return len(containers)


class DockerEngine(DockerReaches, DockerConnection):
    """The Docker engine of this machine, which can also act inside its containers."""


def _masked_lines(blocks: Iterable[bytes], attributes: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of a log; the values of the container's secrets are masked."""
    mask = masker(secrets_of(attributes))
    for lines in lines_of(blocks):
        yield from map(mask, lines)


def caller_of(connect: Callable[[], Engine]) -> str:
    """Returns the `uid:gid` that the caller of this program has in the engine's containers.

    Raises:
        HostError: no engine answers.
        EngineError: the engine stopped answering.
    """
    with contextlib.closing(connect()) as engine:
        return caller(engine_kind(engine.info(), address()))
