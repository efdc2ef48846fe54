"""What the kit needs of a container engine; `client` is Docker's, tests have one of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from cluster_kit.engine.containers import Container, Event


class Engine(Protocol):
    """An engine that answers. Everything is found by our labels; nothing else is touched.

    Every method raises EngineError where the engine refuses, or answers no more.
    """

    def answers(self) -> bool:
        """Whether the engine answers now. Never raises."""
        ...

    def close(self) -> None: ...

    def info(self) -> dict[str, Any]:
        """`docker info`."""
        ...

    def networks(self) -> list[tuple[str, str, str]]:
        """(name, cluster or "", CIDR) of every IPv4 subnet of every Docker network."""
        ...

    def clusters(self) -> list[str]:
        """Names of all clusters that have a container or a network, sorted."""
        ...

    def containers(self, cluster: str) -> list[Container]:
        """All task containers of a cluster, in task order, running or not."""
        ...

    def events(self, cluster: str, since: float) -> Iterator[Event]:
        """Events of a cluster's containers from Unix time `since`, live.

        Ends where the engine closes the connection: it stopped, or was killed.
        """
        ...

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        """(device id, cluster) of every GPU that a container of ours holds or is about to."""
        ...

    def gpu_refusal(self, driver: str, device_id: str) -> str:
        """Why the engine cannot hand out this GPU, "" where it can."""
        ...

    def logs(self, container_id: str) -> str:
        """What a container said, stdout and stderr in order, times in front."""
        ...

    def follow(self, container_id: str, since: float | None = None) -> Iterator[str]:
        """Lines of a container as they come, until it ends."""
        ...

    def comes_back(self, container_id: str, within_s: float) -> bool:
        """Whether an ended container runs again within so many seconds."""
        ...

    def start_again(self, container_id: str) -> None:
        """Start an ended container once more."""
        ...

    def stop(self, cluster: str) -> None:
        """Stop all containers of a cluster that still run, all at once."""
        ...

    def remove(self, cluster: str) -> int:
        """Stop and remove every container and network of a cluster; returns how many containers."""
        ...
