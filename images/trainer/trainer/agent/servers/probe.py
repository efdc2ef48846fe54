"""Probes TensorFlow servers with GetStatus, which returns job, task index and incarnation.

Finds a silent server, even if its process still runs, and one that answers as another task (swapped
addresses, wrong index).
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.agent.beacon.messages import Silent
from trainer.agent.beacon.silence import Silence
from trainer.agent.errors import ServerError
from trainer.agent.injected.gpu_promises import Gpu
from trainer.agent.servers import wire
from trainer.agent.task import Address, role_of
from trainer.contract import heartbeat

METHOD = "/tensorflow.WorkerService/GetStatus"
CHANNEL_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 500),
    ("grpc.dns_min_time_between_resolutions_ms", 500),  # instead of 30 s: an address may change
)
DEVICE_NAME = re.compile(r"/job:([^/]+)/replica:\d+/task:(\d+)/")
DESCRIPTION = re.compile(r"name: (.*), pci bus id: ([^,]*)")


@dataclass(frozen=True)
class Answer:
    """The server at the address of `task`: `found` is the task's name that it gave, None without an
    answer.
    """

    task: str
    address: str
    found: str | None
    incarnation: int = 0
    gpus: tuple[Gpu, ...] = ()
    """The physical GPUs that it shows."""

    @property
    def right(self) -> bool:
        return self.found == self.task

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.task} at {self.address} is silent"
        if self.right:
            return f"{self.task} at {self.address} answers"
        return f"{self.address} answers as {_colon(self.found)}, expected {_colon(self.task)}"


@dataclass(frozen=True)
class ServersReady:
    """Every server answered with its own name; `incarnations` changes when a server is
    restarted."""

    incarnations: Mapping[str, int]
    gpus: Mapping[str, tuple[Gpu, ...]] = field(default_factory=dict)
    """The devices that each server reports."""


@dataclass(frozen=True)
class ServersMissing:
    """The deadline passed; `wrong` has each server that is silent or answers as another task."""

    wrong: tuple[Answer, ...]
    asked: int
    deadline_s: float

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(answer.task for answer in self.wrong)

    def __str__(self) -> str:
        return (
            f"{len(self.wrong)} of {self.asked} servers not ready after {self.deadline_s:g} s: "
            + "; ".join(str(answer) for answer in self.wrong)
        )


def wait_for(
    servers: Mapping[str, str],
    deadline_s: float,
    poll_s: float = 0.1,
    cancelled: threading.Event | None = None,
) -> ServersReady | ServersMissing:
    """Poll until every server (name → address) answers with its own name, or `deadline_s` has
    passed."""
    cancelled = cancelled or threading.Event()
    until = time.monotonic() + deadline_s
    with Prober(servers) as prober:
        while True:
            left = until - time.monotonic()
            answers = prober.ask(min(2.0, max(0.2, left)))
            wrong = tuple(answer for answer in answers if not answer.right)
            if not wrong:
                return ServersReady(
                    {answer.task: answer.incarnation for answer in answers},
                    {answer.task: answer.gpus for answer in answers},
                )
            if time.monotonic() + poll_s > until or cancelled.wait(poll_s):
                return ServersMissing(wrong, len(answers), deadline_s)


def lost_since(
    ready: ServersReady, servers: Mapping[str, str], timeout_s: float = 2.0
) -> tuple[str, ...]:
    """Changes of servers since `ready`: 'ps-0 was started again', 'ps-1 is silent'.

    Restarts of workers are omitted beside other changes: a coordinator survives them.
    """
    with Prober(servers) as prober:
        answers = prober.ask(timeout_s)
    changed = [
        answer
        for answer in answers
        if not answer.right or answer.incarnation != ready.incarnations.get(answer.task)
    ]
    causes = [a for a in changed if not (a.right and a.task.startswith("worker-"))]
    return tuple(
        f"{answer.task} was started again" if answer.right else str(answer)
        for answer in causes or changed
    )


class Prober:
    """Open channels to the servers (name → address); `ask` may be called repeatedly."""

    def __init__(self, servers: Mapping[str, str]) -> None:
        self._servers = dict(servers)
        self._calls: dict[str, Any] = {}
        self._found: dict[str, frozenset[str]] = {}
        """The address of each server when its channel was opened."""

    def __enter__(self) -> Prober:
        # Imported here: only a leader with servers needs it.
        import grpc

        self._grpc = grpc
        self._channels: dict[str, Any] = {}
        for task in self._servers:
            self._open(task)
        return self

    def _open(self, task: str) -> None:
        address = self._servers[task]
        self._channels[task] = self._grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
        self._found[task] = ip_addresses(address)

    def __exit__(self, *_: object) -> None:
        for channel in self._channels.values():
            channel.close()

    def ask(self, timeout_s: float) -> list[Answer]:
        """Query all servers at the same time; returns one answer for each."""
        calls = {
            task: channel.unary_unary(METHOD).future(b"", timeout=timeout_s)
            for task, channel in self._channels.items()
        }
        return [self._answer(task, call) for task, call in calls.items()]

    def answered(self, timeout_s: float) -> list[str]:
        """The answers since the last call; does not wait. Queries again each server that has
        answered, failed, or not answered within `timeout_s`, and each whose address has changed: a
        request to the old address gets no answer."""
        for task, call in list(self._calls.items()):
            if not call.done() and self._has_moved(task):
                self.connect_again(task)
        done = {task: call for task, call in self._calls.items() if call.done()}
        for task, channel in self._channels.items():
            if task in done or task not in self._calls:
                self._calls[task] = channel.unary_unary(METHOD).future(b"", timeout=timeout_s)
        return [task for task, call in done.items() if self._answer(task, call).found is not None]

    def connect_again(self, task: str) -> None:
        """Open a new connection, over which the next query goes: the old one may be dead."""
        self._channels[task].close()
        self._calls.pop(task, None)
        self._open(task)

    def _has_moved(self, task: str) -> bool:
        addresses = ip_addresses(self._servers[task])
        return bool(addresses) and addresses != self._found[task]

    def _answer(self, task: str, call: object) -> Answer:
        address = self._servers[task]
        try:
            devices = wire.devices(call.result())
        except self._grpc.RpcError:
            return Answer(task, address, None)
        except ValueError:
            return Answer(task, address, "something that is not a TensorFlow server")
        for device in devices:
            match = DEVICE_NAME.match(device.name)
            if match:
                name = f"{role_of(match[1])}-{match[2]}"
                return Answer(task, address, name, device.incarnation, physical_gpus(devices))
        return Answer(task, address, "a server without devices")


def ip_addresses(address: str) -> frozenset[str]:
    """The IP addresses of `host:port` by now; none if the name is not known at the moment."""
    host, _, port = address.rpartition(":")
    try:
        return frozenset(str(one[4][0]) for one in socket.getaddrinfo(host.strip("[]"), port))
    except OSError:
        return frozenset()


def physical_gpus(devices: Iterable[wire.Device]) -> tuple[Gpu, ...]:
    """The physical GPUs of the devices, each once: a GPU may have several logical devices."""
    gpus = {
        device.description or device.name: DESCRIPTION.search(device.description)
        for device in devices
        if device.kind == "GPU"
    }
    return tuple(Gpu(gpu[1], gpu[2]) if gpu else Gpu(text) for text, gpu in gpus.items())


def _colon(task: str) -> str:
    """`worker-1` as TensorFlow writes it: `worker:1`."""
    return re.sub(r"-(\d+)$", r":\1", task)


ASK_EVERY_S = 2.0


def watch_servers(
    servers: Mapping[str, str],
    silent_s: float,
    moves: Mapping[str, int],
    then: Callable[[Silent], None],
    over: threading.Event,
) -> None:
    """Call `then` about every server (name to address) that has not answered for too long.

    Ends with `over`. A server whose process has ended, or has begun again, has the whole time to
    answer from then on: it would otherwise be killed while it starts.

    Args:
        moves: how often each task's process has ended or begun.
    """
    limit_s = heartbeat.limit_s(silent_s, server=True)
    silence, known = Silence(time.monotonic()), {task: moves.get(task, 0) for task in servers}
    for task in servers:
        silence.heard(task)
    with Prober(servers) as prober:
        while not over.wait(ASK_EVERY_S):
            moved = [task for task in servers if moves.get(task, 0) != known[task]]
            for task in moved:
                known[task] = moves[task]
                prober.connect_again(task)
            for task in prober.answered(limit_s):
                silence.heard(task)
            silence.look(time.monotonic())
            for task in moved:
                silence.heard(task)
            for task, seconds in silence.silent(silent_s, server=True).items():
                then(Silent(task, seconds, server=True))


def check_port(address: Address) -> None:
    """Raise ServerError if TensorFlow could not listen on `address`; it would only log that.

    TensorFlow listens on all addresses, so an IP that is not this machine's would go unnoticed.
    A name may stand for a virtual address (swarm, Kubernetes), so only its port is tried.
    """
    is_name = any(letter.isalpha() for letter in address.host) and ":" not in address.host
    host = "0.0.0.0" if is_name else address.host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, address.port), family=family).close()
    except OSError as problem:
        raise ServerError(
            f"cannot listen on {address}: {problem.strerror}; the address must be this container's"
            " own (TF_CONFIG) and its port free"
        ) from problem
