"""The interface of a container engine; `client` implements it for Docker, tests with a fake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from cluster_kit.engine.containers import CommandOutput, Container, Event, Glance
from cluster_kit.engine.helper import Helper
from cluster_kit.engine.subscription import Subscription


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
        """What `docker info` shows."""
        ...

    def identity(self) -> str:
        """A name that no other engine has, by whichever socket this one is reached."""
        ...

    def networks(self) -> list[tuple[str, str, str]]:
        """(name, cluster or "", CIDR) of every IPv4 subnet of every Docker network."""
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

    def glance(self) -> list[Glance]:
        """The containers of all clusters, sidecars included, by one question: next to no cost."""
        ...

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        """Events of a cluster's containers, or only this run's, from Unix time `since`, live.

        Ends if another thread ends `until`, or if the engine closes the connection: it has stopped,
        or was killed. One that knows when it has told all of the past says so by `ALL_TOLD`, once.
        """
        ...

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        """(device id, cluster) of every GPU that a container of the kit holds or is about to."""
        ...

    def gpus_reserved(self) -> tuple[tuple[str, str], ...]:
        """(device id or "all", container's name) of the GPUs of running containers of others."""
        ...

    def gpu_refusal(self, driver: str, device_id: str) -> str:
        """Why the engine cannot hand out this GPU, "" if it can."""
        ...

    def lines(self, container_id: str, *, stderr: bool = False) -> Iterator[str]:
        """Yields the lines of a container's log so far, stdout and stderr in order.

        Each has its time in front. With `stderr` only that. The values of the container's secrets
        are masked, also in `follow`. Docker's needs bounded memory, whatever a task has printed.
        """
        ...

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        """Yields the lines of a container's log since Unix time `since`, until it ends.

        With `times` each has its time in front, as in `lines`.
        """
        ...

    def comes_back(self, container_id: str, within_s: float) -> bool:
        """Wait until an ended container runs again; False if it does not within these seconds."""
        ...

    def ask(self, container_id: str, command: Sequence[str], within_s: int) -> CommandOutput:
        """What a command that is run inside a running container prints, with its exit code."""
        ...

    def execute(self, container_id: str, command: Sequence[str]) -> None:
        """Start a command inside a running container, and do not wait for it."""
        ...

    def kill(self, container_id: str) -> None:
        """End a container's processes at once, frozen ones too. It is not started again by itself.

        One that has ended by now stays so.
        """
        ...

    def attach(self, container_id: str, cluster: str, task: str, ip: str) -> None:
        """Connect a container without a network to its cluster's, with its name and address."""
        ...

    def detach(self, container_id: str, cluster: str) -> None:
        """Disconnect a container from its cluster's network."""
        ...

    def limit_cpus(self, container_id: str, cpus: float) -> None:
        """Give a container at most so many cores from now on."""
        ...

    def memory_used(self, container_id: str) -> int:
        """Bytes of memory that a running container uses now, its page cache included."""
        ...

    def limit_memory(self, container_id: str, memory: int, *, swap: bool) -> None:
        """Give a container at most so many bytes from now on, and as many of swap if there is any.

        Without `swap` it gets none. It has to use less already.
        """
        ...

    def freeze(self, container_id: str) -> None:
        """Let no process of a running container run any more; its state is `paused` then."""
        ...

    def thaw(self, container_id: str) -> None:
        """Let a frozen container's processes go on."""
        ...

    def start_helper(self, cluster: str, chosen: Helper) -> str:
        """Start a helper for a drill; the first line that it prints. It goes with its cluster."""
        ...

    def end(self, container_id: str) -> None:
        """Stop a running container with its grace period. It is not started again by itself.

        One that has ended by now stays so.
        """
        ...

    def start_again(self, container_id: str) -> None:
        """Start an ended container once more."""
        ...

    def stop(self, cluster: str, run: str = "") -> None:
        """Stop all running containers of a cluster, or only of this run, in parallel."""
        ...

    def remove(self, cluster: str, run: str = "") -> int:
        """Stop and remove all containers and networks of a cluster, or only of this run.

        Returns the number of containers.
        """
        ...
