"""A simulated container engine, with the methods that the kit uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms.engine import SIDECAR, Container, ContainerSummary, Event, Subscription
from cluster_kit.util.masking import masked
from tests.fakes.acting import Life
from tests.fakes.adjust import Adjusted
from tests.fakes.clock import Clock


class FakeEngine(Adjusted):
    """See `cluster_kit.platforms.engine.Engine`. `facts` are the values of `docker info`."""

    def __init__(self, clock: Clock, acting: Mapping[str, Sequence[Life]] | None = None) -> None:
        super().__init__(clock, acting)
        self.reserved: tuple[tuple[str, str], ...] = ()
        self.facts: dict[str, Any] = {
            "NCPU": 64, "MemTotal": 2**38, "ServerVersion": "26.1.5", "DockerRootDir": "/nowhere",
        }  # fmt: skip

    def answers(self) -> bool:
        return not (self.lost or self.hangs)

    def close(self) -> None:
        pass

    def info(self) -> dict[str, Any]:
        self._asked("info")
        return self.facts

    def identity(self) -> str:
        self._asked("identity")
        return "F4KE:0001"

    def networks(self) -> list[tuple[str, str, str]]:
        self._asked("networks")
        return [(name, cluster, str(cidr)) for name, (cluster, cidr) in self.subnets.items()]

    def clusters(self) -> list[str]:
        self._asked("clusters")
        return sorted({box.cluster for box in self.boxes.values()})

    def containers(self, cluster: str, run: str = "") -> list[Container]:
        self._asked("containers")
        shown = [box.shown() for box in self._of(cluster, run)]
        return [one for one in shown if one.role != SIDECAR]

    def sidecars(self, cluster: str, run: str = "") -> list[Container]:
        self._asked("sidecars")
        shown = [box.shown() for box in self._of(cluster, run)]
        return sorted((c for c in shown if c.role == SIDECAR), key=lambda c: c.name)

    def glance(self) -> list[ContainerSummary]:
        self._asked("glance")
        return [
            ContainerSummary(
                id=one.id,
                cluster=one.cluster,
                run=box.mark.get(labels.RUN, ""),
                name=one.name,
                role=one.role,
                state=one.state,
                output=one.output,
            )
            for box in self.boxes.values()
            for one in [box.shown()]
        ]

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        self._asked("events")
        yield from self.heard(since, until or Subscription())

    def gpus_reserved(self) -> tuple[tuple[str, str], ...]:
        self._asked("gpus_reserved")
        return self.reserved

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        return tuple(
            (device, box.cluster)
            for box in self.boxes.values()
            if box.state not in ("exited", "dead")
            for device in box.mark.get(labels.GPUS, "").split(",")
            if device
        )

    def gpu_refusal(self, _driver: str, _device: str) -> str:
        return ""

    def lines(self, container_id: str, *, stderr: bool = False) -> Iterator[str]:
        self._asked("lines")
        box = self._box(container_id)
        for at, line in box.stderr if stderr else box.log:
            yield masked(f"{_stamp(at)} {line}", box.shown().secrets)

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        position = 0
        while not self._over:
            box = self.boxes.get(container_id)
            if box is None:
                return
            ended = box.state in ("exited", "restarting")
            printed = [(at, line) for at, line in list(box.log) if since is None or at >= since]
            secrets = box.shown().secrets
            shown = [(at, masked(line, secrets)) for at, line in printed]
            lines = [f"{_stamp(at)} {line}" if times else line for at, line in shown]
            yield from lines[position:]
            position = len(lines)
            if ended:
                return
            self._wait()

    def comes_back(self, container_id: str, within_s: float) -> bool:
        until = self.clock.monotonic() + within_s
        while not self._over and self.clock.monotonic() < until and container_id in self.boxes:
            if self.boxes[container_id].state == "running":
                return True
            self._wait()
        return False

    def stop(self, cluster: str, run: str = "") -> None:
        self._asked("stop")
        for box in self._of(cluster, run):
            self.stop_box(box)

    def remove(self, cluster: str, run: str = "") -> int:
        self._asked("remove")
        boxes = self._of(cluster, run)
        for box in boxes:
            self.stop_box(box)
            del self.boxes[box.id]
        self.subnets = {n: kept for n, kept in self.subnets.items() if kept[0] != cluster}
        return len(boxes)


def _stamp(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
