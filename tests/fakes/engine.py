"""A container engine in memory: containers, networks, events, logs, restarts by policy."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time as real_time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.engine.containers import Container, Event
from cluster_kit.errors import EngineError
from tests.fakes.acting import Life, Step, ends, usual
from tests.fakes.clock import Clock

NO_ANSWER = "the Docker engine does not answer: Connection refused"
BACKOFF_S = 0.3
_PATIENCE_S = 10.0


@dataclass
class Box:
    """A container: what the compose file says of it, and what has become of it."""

    id: str
    task: str
    cluster: str
    service: Mapping[str, Any]
    output: str
    created: float
    state: str = "created"
    exit_code: int | None = None
    started: float = -6e10
    lives: int = 0
    restarts: int = 0
    oom: bool = False
    by_hand: bool = False
    log: list[tuple[float, str]] = field(default_factory=list)

    @property
    def mark(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.service["labels"]
        return found

    @property
    def leads(self) -> bool:
        return self.mark[labels.LEADER] == "true"

    def shown(self) -> Container:
        alive = self.state in ("running", "paused", "created")
        return Container(
            id=self.id,
            cluster=self.cluster,
            name=self.task,
            role=self.mark[labels.ROLE],
            index=int(self.mark[labels.INDEX]),
            leader=self.leads,
            ip=str(self.service["networks"]["cluster"]["ipv4_address"]),
            gpus=(),
            state=self.state,
            exit_code=None if alive else self.exit_code,
            restarts=self.restarts,
            oom=self.oom,
            created=self.created,
            started=self.started,
            output=self.output,
        )


class FakeEngine:
    """See `cluster_kit.engine.interface.Engine`.

    `acting` says what tasks do, life by life; the last life is repeated. `on_call` is told of each
    method that is called, before it does anything.
    """

    def __init__(self, clock: Clock, acting: Mapping[str, Sequence[Life]] | None = None) -> None:
        self.clock = clock
        self.acting = dict(acting or {})
        self.boxes: dict[str, Box] = {}
        self.subnets: dict[str, tuple[str, IPv4Network]] = {}
        self.refuses: dict[str, str] = {}
        self.facts: dict[str, Any] = {
            "NCPU": 64, "MemTotal": 2**38, "ServerVersion": "26.1.5", "DockerRootDir": "/nowhere",
        }  # fmt: skip
        self.lost = False
        self.on_call: Callable[[str], None] = lambda _name: None
        self._history: list[Event] = []
        self._listeners: list[queue.Queue[Event | None]] = []
        self._changed = threading.Condition()
        self._over = False
        clock.settle = self.settle

    # What the kit asks.

    def answers(self) -> bool:
        return not self.lost

    def close(self) -> None:
        pass

    def info(self) -> dict[str, Any]:
        self._asked("info")
        return self.facts

    def networks(self) -> list[tuple[str, str, str]]:
        self._asked("networks")
        return [(name, cluster, str(cidr)) for name, (cluster, cidr) in self.subnets.items()]

    def clusters(self) -> list[str]:
        self._asked("clusters")
        return sorted({box.cluster for box in self.boxes.values()})

    def containers(self, cluster: str) -> list[Container]:
        self._asked("containers")
        return self.seen(cluster)

    def events(self, cluster: str, since: float) -> Iterator[Event]:
        self._asked("events")
        with self._changed:
            heard: queue.Queue[Event | None] = queue.Queue()
            for event in self._history:
                if event.time >= since:
                    heard.put(event)
            self._listeners.append(heard)
        while (told := heard.get()) is not None:
            yield told
            heard.task_done()
        heard.task_done()

    def gpus_taken(self) -> tuple[tuple[str, str], ...]:
        return ()

    def gpu_refusal(self, _driver: str, _device: str) -> str:
        return ""

    def logs(self, container_id: str) -> str:
        self._asked("logs")
        lines = [line for _, line in self._box(container_id).log]
        return "".join(f"2025-06-15T15:06:40.0Z {line}\n" for line in lines)

    def follow(self, container_id: str, since: float | None = None) -> Iterator[str]:
        position = 0
        while not self._over:
            box = self.boxes.get(container_id)
            if box is None:
                return
            lines = [line for at, line in box.log if since is None or at >= since]
            yield from lines[position:]
            position = len(lines)
            if box.state in ("exited", "restarting"):
                return
            self._wait()

    def comes_back(self, container_id: str, within_s: float) -> bool:
        until = self.clock.monotonic() + within_s
        while not self._over and self.clock.monotonic() < until and container_id in self.boxes:
            if self.boxes[container_id].state == "running":
                return True
            self._wait()
        return False

    def start_again(self, container_id: str) -> None:
        self._asked("start_again")
        self.start(self._box(container_id))

    def stop(self, cluster: str) -> None:
        self._asked("stop")
        for box in self._of(cluster):
            self.stop_box(box)

    def remove(self, cluster: str) -> int:
        self._asked("remove")
        boxes = self._of(cluster)
        for box in boxes:
            self.stop_box(box)
            del self.boxes[box.id]
        self.subnets = {n: kept for n, kept in self.subnets.items() if kept[0] != cluster}
        return len(boxes)

    # What happens in it.

    def seen(self, cluster: str) -> list[Container]:
        """As `containers`, for a test that looks."""
        return [box.shown() for box in self._of(cluster)]

    def create(self, task: str, service: Mapping[str, Any], output: str) -> Box:
        number = f"{len(self._history):012x}{task}"
        cluster = service["labels"][labels.CLUSTER]
        box = Box(number, task, cluster, service, output, self.clock.time())
        self.boxes[box.id] = box
        self._tell(box, "create")
        return box

    def start(self, box: Box) -> None:
        if refusal := self.refuses.get(box.task):
            raise EngineError(refusal)
        box.lives += 1
        box.state, box.exit_code, box.by_hand = "running", None, False
        box.started = self.clock.time()
        self._tell(box, "start")
        life = self.life(box)
        for step in life.steps:
            self.clock.at(step.at, self._doing(box, box.lives, step))
        if not box.leads and self._job_ended(box.cluster) is not None:
            self._follow_the_leader(box)

    def life(self, box: Box) -> Life:
        leader = next((b.task for b in self._of(box.cluster) if b.leads), box.task)
        lives = self.acting.get(box.task) or [usual(box.task, leader, box.service["command"])]
        return lives[min(box.lives, len(lives)) - 1]

    def stop_box(self, box: Box) -> None:
        """`docker stop`."""
        box.by_hand = True
        if box.state == "restarting":
            box.state = "exited"
        if box.state not in ("running", "paused"):
            return
        self._tell(box, "kill")
        if self.life(box).stubborn:
            self._die(box, 137)
        else:
            self._do(box, ends(0.0, 143, "stopped", "stopped by SIGTERM"))

    def pause(self, task: str, paused: bool) -> None:
        box = next(box for box in self.boxes.values() if box.task == task)
        box.state = "paused" if paused else "running"
        self._tell(box, "pause" if paused else "unpause")

    def lose(self) -> None:
        """The engine is killed: containers live on, and nobody can ask for them."""
        self.lost = True
        self.hang_up()

    def hang_up(self) -> None:
        """Close the streams of events."""
        with self._changed:
            for heard in self._listeners:
                heard.put(None)
            self._listeners.clear()

    def finish(self) -> None:
        """The test is over: let go of all threads."""
        self._over = True
        self.hang_up()
        with self._changed:
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until all events that were told have been taken in."""
        until = real_time.monotonic() + _PATIENCE_S
        while real_time.monotonic() < until:
            listening = self.lost or self._listeners or not self.boxes
            if listening and not any(heard.unfinished_tasks for heard in self._listeners):
                return
            real_time.sleep(0.0005)
        raise AssertionError("nobody listens to the engine's events")

    def _doing(self, box: Box, life: int, step: Step) -> Callable[[], None]:
        def do() -> None:
            alive = box.id in self.boxes and box.lives == life and box.state == "running"
            if alive:
                self._do(box, step)

        return do

    def _do(self, box: Box, step: Step) -> None:
        if step.line:
            box.log.append((self.clock.time(), step.line))
        if step.event:
            self._write(box, step)
        if step.oom:
            box.oom = True
            self._tell(box, "oom")
        if step.code is not None:
            self._die(box, step.code)
        self._notify()

    def _write(self, box: Box, step: Step) -> None:
        """What the task appends to its progress file; the next moment is a little later."""
        entry = {"time": self.clock.time(), "event": step.event, **(step.fields or {})}
        file = Path(box.output) / "progress" / f"{box.task}.jsonl"
        with contextlib.suppress(OSError), file.open("a") as lines:
            lines.write(json.dumps(entry) + "\n")

    def _die(self, box: Box, code: int) -> None:
        box.exit_code, box.state = code, "exited"
        self._tell(box, "die", code)
        policy, _, most = str(box.service["restart"]).partition(":")
        if policy == "on-failure" and code and not box.by_hand and box.restarts < int(most):
            box.state = "restarting"
            box.restarts += 1
            self.clock.at(BACKOFF_S, self._restarting(box))
        if box.leads and self._job_ended(box.cluster) is not None:
            for other in self._of(box.cluster):
                if not other.leads and other.state == "running":
                    self._follow_the_leader(other)

    def _restarting(self, box: Box) -> Callable[[], None]:
        def start() -> None:
            if box.id in self.boxes and box.state == "restarting":
                self.start(box)

        return start

    def _job_ended(self, cluster: str) -> int | None:
        """The leader's exit code where it has ended with a last word, as its beacon would say."""
        leader = next((box for box in self._of(cluster) if box.leads), None)
        if leader is None or leader.state != "exited" or leader.exit_code in (137, 139):
            return None
        return leader.exit_code

    def _follow_the_leader(self, box: Box) -> None:
        life = self.life(box)
        if not life.deaf:
            self.clock.at(life.after_job_s, self._doing(box, box.lives, life.last))

    def _tell(self, box: Box, action: str, code: int | None = None) -> None:
        event = Event(self.clock.time() + 1e-6 * len(self._history), action, box.task, code)
        with self._changed:
            self._history.append(event)
            for heard in self._listeners:
                heard.put(event)
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _wait(self) -> None:
        with self._changed:
            self._changed.wait(0.01)

    def _of(self, cluster: str) -> list[Box]:
        return [box for box in self.boxes.values() if box.cluster == cluster]

    def _box(self, container_id: str) -> Box:
        if container_id not in self.boxes:
            raise EngineError(f"the Docker engine refused: No such container: {container_id}")
        return self.boxes[container_id]

    def _asked(self, name: str) -> None:
        self.on_call(name)
        if self.lost:
            raise EngineError(NO_ANSWER, "start it (`make engine`)")
