"""The protocol of an engine: the methods by which a run controls its containers."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, cast, runtime_checkable

from cluster_kit.errors import EngineError

SIDECAR = "sidecar"
"""The role of a sidecar's container."""


@dataclass(frozen=True)
class Container:
    """A task's or a sidecar's container as the engine reports it.

    `exit_code` is None while it runs and before it has started; if the engine is about to restart
    it, it is the exit code of its last end. `created`, `started` and `finished` are Unix seconds:
    the last start and the last end, negative if there was none. `output` is the host's directory
    mounted at /output. `attached`: it has a network.
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
    created: float
    started: float
    finished: float
    output: str
    attached: bool = True
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """The secret values of its variables."""
    taken_away: str = ""
    """The reason why the engine ended it (evicted, lost node); "" if it did not."""
    user: str = ""
    """The user of its task, as `uid:gid`, even if it starts as root; "" if unknown."""


@dataclass(frozen=True)
class ContainerSummary:
    """A task's container in the engine's list: fewer fields than `Container`, and fast to get.

    `run` is the id of its run, "" if it was started without the kit.
    """

    id: str
    cluster: str
    run: str
    name: str
    role: str
    state: str
    output: str


class CommandOutput(str):
    """The output of a command inside a container, stdout and stderr, with its exit code.

    `exit_code` is 124 if the command was ended after a timeout, None if it continues to print.
    """

    exit_code: int | None

    def __new__(cls, text: str, exit_code: int | None = 0) -> CommandOutput:
        """Create the text, as a str with the exit code."""
        output = super().__new__(cls, text)
        output.exit_code = exit_code
        return output


class Action(StrEnum):
    """The actions of events that the kit handles, as Docker spells them.

    LOST, HOMELESS and ALL_TOLD are the kit's. LOST: the node is down; a DIE follows. HOMELESS: no
    node can run the task. ALL_TOLD: the engine has reported all events before the request.
    """

    CREATE = "create"
    START = "start"
    DIE = "die"
    OOM = "oom"
    KILL = "kill"
    PAUSE = "pause"
    UNPAUSE = "unpause"
    DESTROY = "destroy"
    LOST = "lost"
    HOMELESS = "homeless"
    ALL_TOLD = "all-told"


@dataclass(frozen=True)
class Event:
    """An event of a task's container; `time` in Unix seconds.

    `action` is `start`, `die`, `oom`, `kill`, … (see `Action`), or another of the engine's actions.
    On a swarm also `lost`, before its `die`, with the node that is down, and `homeless`: no node
    can run it, with the reason. A `die` has a reason if no container ran at all; a `kill` has the
    node if it is drained.
    """

    time: float
    action: str
    task: str
    exit_code: int | None
    said: str = ""


def seconds_of(time: str) -> float:
    """Unix seconds of the engine's RFC 3339 time; year 1 means never."""
    return datetime.fromisoformat(time).timestamp()


@dataclass(frozen=True)
class Helper:
    """A helper's command, image, and the containers whose namespaces it uses ("" for its own).

    It is root with only `capabilities`, unless `privileged`. It prints one line as soon as it
    works, and ends by itself.
    """

    image: str
    command: tuple[str, ...]
    network_of: str = ""
    processes_of: str = ""
    capabilities: tuple[str, ...] = ()
    privileged: bool = False


class Subscription:
    """A stream that lasts until `end`; its producer registers a function to close it by
    `ends_by`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._close: Callable[[], None] | None = None

    def ends_by(self, close: Callable[[], None]) -> None:
        """Call `close` at the end (at once if it has already ended); any thread may call this."""
        with self._lock:
            self._close = close
            over = self._over.is_set()
        if over:
            close()

    def end(self) -> None:
        """End the stream: its iterator stops. A second call does nothing."""
        with self._lock:
            close, self._close = self._close, None
            self._over.set()
        if close is not None:
            close()

    def wait(self, seconds: float) -> bool:
        """Wait for this long, or until the end; returns whether it has ended."""
        return self._over.wait(seconds)


class Engine(Protocol):
    """A connection to an engine. It finds everything by the kit's labels and touches nothing else.

    Every method raises EngineError if the engine refuses or does not answer any more.
    """

    def answers(self) -> bool:
        """Whether the engine answers within 3 seconds. Never raises."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...

    def info(self) -> dict[str, Any]:
        """The output of `docker info`."""
        ...

    def identity(self) -> str:
        """A unique name of the engine, independent of the socket."""
        ...

    def clusters(self) -> list[str]:
        """Names of all clusters that have a container or a network, sorted."""
        ...

    def containers(self, cluster: str, run: str = "") -> list[Container]:
        """All task containers of a cluster, or only of this run, in task order, running or not."""
        ...

    def sidecars(self, cluster: str, run: str = "") -> list[Container]:
        """The containers of a cluster's sidecars, or only of this run's, by name."""
        ...

    def glance(self) -> list[ContainerSummary]:
        """The containers of all clusters, including sidecars, with a single request."""
        ...

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        """Events of a cluster's containers, or only this run's, from Unix time `since`, live.

        Ends if another thread ends `until`, or if the engine closes the connection: it has stopped,
        or was killed. An engine that knows when it has reported all past events yields
        `Action.ALL_TOLD` once.
        """
        ...

    def lines(self, container_id: str, *, stderr: bool = False) -> Iterator[str]:
        """Yields the lines of a container's log so far, stdout and stderr in order.

        Each has its time in front. If `stderr`, only its lines. The values of the container's
        secrets are masked, also in `follow`. Docker's engine needs only limited memory, even for a
        very long log.
        """
        ...

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        """Yields the lines of a container's log since Unix time `since`, until it ends.

        If `times`, each has its time in front, as in `lines`.
        """
        ...

    def comes_back(self, container_id: str, within_s: float) -> bool:
        """Wait until an ended container runs again; False if it does not within these seconds."""
        ...

    def kill(self, container_id: str) -> None:
        """End a container's processes at once, frozen ones too. It is not started again by itself.

        One that has ended by now stays so.
        """
        ...

    def end(self, container_id: str) -> None:
        """Stop a running container with its grace period. It is not started again by itself.

        One that has ended by now stays so.
        """
        ...

    def start_again(self, container_id: str) -> None:
        """Restart an ended container."""
        ...

    def stop(self, cluster: str, run: str = "") -> None:
        """Stop all running containers of a cluster, or only of this run, in parallel."""
        ...

    def remove(self, cluster: str, run: str = "") -> int:
        """Stop and remove all containers and networks of a cluster, or only of this run.

        Returns the number of containers.
        """
        ...


@runtime_checkable
class Inventory(Protocol):
    """What a Docker engine reports about its host; other engines are not an `Inventory`.

    Every method raises EngineError if the engine refuses or does not answer any more.
    """

    def networks(self) -> list[tuple[str, str, str]]:
        """(name, cluster or "", CIDR) of every IPv4 subnet of every Docker network."""
        ...

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        """(device id, cluster) of every GPU that a container of the kit holds or is about to
        hold."""
        ...

    def gpus_reserved(self) -> tuple[tuple[str, str], ...]:
        """(device id or "all", container's name) of the GPUs of other running containers."""
        ...

    def gpu_refusal(self, driver: str, device_id: str) -> str:
        """Why the engine cannot hand out this GPU, "" if it can."""
        ...


def gpus_taken(engine: Engine) -> tuple[tuple[str, str], ...]:
    """(device id, cluster) of the GPUs that clusters hold; () if nodes assign them."""
    return engine.gpus_taken() if isinstance(engine, Inventory) else ()


class Reaches(Protocol):
    """The methods of engines whose containers are on the engine's machine; see `reaching`.

    Every method raises EngineError if the engine refuses or does not answer any more.
    """

    def ask(self, container_id: str, command: Sequence[str], within_s: int) -> CommandOutput:
        """Run a command inside a running container; returns its output and exit code."""
        ...

    def execute(self, container_id: str, command: Sequence[str]) -> None:
        """Start a command inside a running container, and do not wait for it."""
        ...

    def attach(self, container_id: str, cluster: str, task: str, ip: str) -> None:
        """Connect a container without a network to its cluster's, with its name and address."""
        ...

    def detach(self, container_id: str, cluster: str) -> None:
        """Disconnect a container from its cluster's network."""
        ...

    def limit_cpus(self, container_id: str, cpus: float) -> None:
        """Limit a container to this many cores."""
        ...

    def weigh_as_usual(self, container_id: str) -> None:
        """Give a running container the engine's default weight where CPUs are short."""
        ...

    def memory_used(self, container_id: str) -> int:
        """The bytes of memory that a running container uses now, including its page cache."""
        ...

    def limit_memory(self, container_id: str, memory: int, *, swap: bool) -> None:
        """Limit a container to this many bytes of memory, and swap if the host has any.

        Without `swap` it gets no swap. It must use less than the limit.
        """
        ...

    def freeze(self, container_id: str) -> None:
        """Stop all processes of a running container; its state is then `paused`."""
        ...

    def thaw(self, container_id: str) -> None:
        """Let a frozen container's processes continue."""
        ...

    def start_helper(self, cluster: str, chosen: Helper) -> str:
        """Start a helper for a drill; returns its first line. It is removed with its cluster."""
        ...


class RemoteEngine:
    """The base of engines whose containers are on other machines."""

    out_of_reach: tuple[str, str]
    """The error for methods of `Reaches`, with what to do instead."""


def reaching(engine: Engine) -> Reaches:
    """The engine, as one that has the methods of `Reaches`.

    Raises:
        EngineError: its containers are on other machines.
    """
    if isinstance(engine, RemoteEngine):
        raise EngineError(*engine.out_of_reach)
    return cast(Reaches, engine)


FOLLOW_S = 1.0


class PolledLogs:
    """The part of a remote engine that reads logs; `engine.Engine` describes its methods."""

    def _lines(self, container_id: str, since: float | None, *, stderr: bool = False) -> list[str]:
        """The lines after a time, each with its time in front; all lines without a time."""
        raise NotImplementedError

    def _is_over(self, container_id: str) -> bool:
        raise NotImplementedError

    def lines(self, container_id: str, *, stderr: bool = False) -> Iterator[str]:
        yield from self._lines(container_id, None, stderr=stderr)

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        last = since
        while True:
            over = self._is_over(container_id)
            for line in self._lines(container_id, last):
                stamp, _, text = line.partition(" ")
                last = max(last or 0.0, seconds_of(stamp))
                yield line if times else text
            if over:
                return
            time.sleep(FOLLOW_S)


PIECE = 16 << 10
"""The number of bytes after which Docker begins another piece of a line, with the line's time in
front."""
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+Z ")


def rejoined(line: bytes) -> bytes:
    """The line without the times in front of its further pieces, which can split a character or a
    secret."""
    stamp = _STAMP.match(line) if len(line) > PIECE else None
    # Their length varies: Docker replaces each byte of a split character by a longer one.
    return stamp[0] + line.replace(stamp[0], b"") if stamp else line


def stamped(text: str) -> list[str]:
    """The lines of a log, each with its time in front. A progress bar has other line endings."""
    return [line for line in text.split("\n") if " " in line]


def said_after(lines: Iterable[str], since: float | None) -> list[str]:
    """The lines after a time, each with its time in front; without a time, all lines.

    A line without a time is left out: it comes from an engine that could not read a log.
    """
    return [line for line in lines if (at := _time(line)) is not None and at > (since or -1.0)]


def _time(line: str) -> float | None:
    try:
        return seconds_of(line.partition(" ")[0])
    except ValueError:
        return None
