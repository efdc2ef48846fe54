"""A container engine in memory, as the kit asks it."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cluster_kit import labels
from cluster_kit.engine.containers import SIDECAR, Container, Event, Glance
from cluster_kit.engine.helper import Helper
from cluster_kit.errors import EngineError
from cluster_kit.util.masking import masked
from tests.fakes.acting import Life
from tests.fakes.box import Box
from tests.fakes.clock import Clock
from tests.fakes.machine import Machine

NO_ANSWER = "the Docker engine does not answer: Connection refused"


class FakeEngine(Machine):
    """See `cluster_kit.engine.interface.Engine`.

    `on_call` is told of each method that is called, before it does anything; `facts` are what
    `docker info` says; with `heeds_limits` a container that reaches its memory limit is killed.
    """

    def __init__(self, clock: Clock, acting: Mapping[str, Sequence[Life]] | None = None) -> None:
        super().__init__(clock, acting)
        self.on_call: Callable[[str], None] = lambda _name: None
        self.executed: list[tuple[str, str]] = []
        self.cpus: list[tuple[str, float]] = []
        self.memory: list[tuple[str, int, bool]] = []
        self.heeds_limits = True
        self.helpers: list[Helper] = []
        self.helper_says = "ready"
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

    def glance(self) -> list[Glance]:
        self._asked("glance")
        return [
            Glance(one.id, one.cluster, box.mark.get(labels.RUN, ""), one.name, one.role, one.state,
                   one.output)
            for box in self.boxes.values()
            for one in [box.shown()]
        ]  # fmt: skip

    def events(self, cluster: str, since: float, run: str = "") -> Iterator[Event]:
        self._asked("events")
        with self._changed:
            self._hung_up = False
            heard: queue.Queue[Event | None] = queue.Queue()
            for event in self._history[self._forgotten :]:
                if event.time >= since:
                    heard.put(event)
            self._listeners.append(heard)
        while (told := heard.get()) is not None:
            yield told
            heard.task_done()
        heard.task_done()

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

    def logs(self, container_id: str, *, stderr: bool = False) -> str:
        self._asked("logs")
        box = self._box(container_id)
        lines = box.stderr if stderr else box.log
        text = "".join(f"{_stamp(at)} {line}\n" for at, line in lines)
        return masked(text, box.shown().secrets)

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        position = 0
        while not self._over:
            box = self.boxes.get(container_id)
            if box is None:
                return
            ended = box.state in ("exited", "restarting")
            said = [(at, line) for at, line in list(box.log) if since is None or at >= since]
            lines = [f"{_stamp(at)} {line}" if times else line for at, line in said]
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

    def ask(self, container_id: str, command: Sequence[str], within_s: int) -> str:
        self._asked("ask")
        if "oom_score_adj" in " ".join(command):
            return self._exhaust(self._box(container_id), int(command[-1]))
        return f"{self._box(container_id).task}: {' '.join(command)} within {within_s} s\n"

    def _exhaust(self, box: Box, most: int) -> str:
        """A process inside takes `most` bytes: it is too much if the container may have no more."""
        if not self.heeds_limits or box.memory is None or box.memory > most:
            return f"{most >> 20} MiB were taken\n"
        self.run_out(box)
        return ""

    def execute(self, container_id: str, command: Sequence[str]) -> None:
        """What the shells of drills do; anything else does nothing."""
        self._asked("execute")
        box = self._box(container_id)
        self.executed.append((box.task, command[-1]))
        if command[-1].startswith("kill -9"):
            self.crash(box)
        elif command[-1].startswith("kill -TERM"):
            self.tell(box)

    def kill(self, container_id: str) -> None:
        self._asked("kill")
        self.kill_box(self._box(container_id))

    def attach(self, container_id: str, cluster: str, task: str, ip: str) -> None:
        self._asked("attach")
        box = self._box(container_id)
        assert (box.cluster, box.task, box.shown().ip) == (cluster, task, ip)
        box.attached = True

    def detach(self, container_id: str, cluster: str) -> None:
        self._asked("detach")
        self._box(container_id).attached = False

    def limit_cpus(self, container_id: str, cpus: float) -> None:
        self._asked("limit_cpus")
        self.cpus.append((self._box(container_id).task, cpus))

    def memory_used(self, container_id: str) -> int:
        self._asked("memory_used")
        return self._box(container_id).used

    def limit_memory(self, container_id: str, memory: int, *, swap: bool) -> None:
        self._asked("limit_memory")
        box = self._box(container_id)
        box.memory = memory
        self.memory.append((box.task, memory, swap))

    def freeze(self, container_id: str) -> None:
        self._asked("freeze")
        self.pause(self._box(container_id).task, True)

    def thaw(self, container_id: str) -> None:
        self._asked("thaw")
        self.pause(self._box(container_id).task, False)

    def start_helper(self, cluster: str, chosen: Helper) -> str:
        self._asked("start_helper")
        assert all(box.cluster == cluster for box in self.boxes.values())
        self.helpers.append(chosen)
        return self.helper_says

    def end(self, container_id: str) -> None:
        self._asked("end")
        self.stop_box(self._box(container_id))

    def start_again(self, container_id: str) -> None:
        self._asked("start_again")
        self.start(self._box(container_id))

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

    def _asked(self, name: str) -> None:
        self.on_call(name)
        if self.lost:
            raise EngineError(NO_ANSWER, "start it (`make engine`)")


def _stamp(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
