"""What happens to containers: they start, act, end, restart by policy, and are reported."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.platforms.engine import Container
from tests.fakes.acting import BESIDE, Life, Step, ends, usual
from tests.fakes.box import Box
from tests.fakes.clock import Clock
from tests.fakes.streams import Streams

BACKOFF_S = 0.3


class Machine(Streams):
    """Containers and networks. `acting` has the actions of tasks, life by life; the last is
    repeated. Tasks in `refuses` do not start, with these messages."""

    def __init__(self, clock: Clock, acting: Mapping[str, Sequence[Life]] | None = None) -> None:
        super().__init__(clock)
        self.acting = dict(acting or {})
        self.subnets: dict[str, tuple[str, IPv4Network]] = {}
        self.refuses: dict[str, str] = {}
        self.hangs = False

    def seen(self, cluster: str) -> list[Container]:
        """Returns the same as `containers`, for a test."""
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
        if not box.leads and not box.sidecar and self._job_ended(box.cluster) is not None:
            self._follow_the_leader(box)

    def life(self, box: Box) -> Life:
        leader = next((b.task for b in self._of(box.cluster) if b.leads), box.task)
        if box.sidecar and box.task not in self.acting:
            return BESIDE
        lives = self.acting.get(box.task) or [usual(box.task, leader, box.service["command"])]
        return lives[min(box.lives, len(lives)) - 1]

    def stop_box(self, box: Box) -> None:
        """Act as `docker stop`."""
        box.by_hand = True
        if box.state == "restarting":
            box.state = "exited"
        if box.state not in ("running", "paused"):
            return
        self._tell(box, "kill")
        if self.life(box).stubborn:
            self._die(box, 137)
        elif self.life(box).young or box.sidecar:
            self._die(box, 143)
        else:
            self._do(box, ends(0.0, 143, "stopped", "stopped by SIGTERM"))

    def kill_box(self, box: Box) -> None:
        """Act as `docker kill`: frozen processes end, too."""
        if box.state in ("running", "paused"):
            box.by_hand = True
            self._tell(box, "kill")
            self._die(box, 137)

    def crash(self, box: Box) -> None:
        """Kill all its processes from inside; this does not count as a stop by the user."""
        if box.state == "running":
            self._die(box, 137)

    def run_out(self, box: Box) -> None:
        """Kill its program as the kernel does when the memory limit is reached."""
        if box.state == "running":
            self._do(box, Step(0.0, code=137, oom=True))

    def tell(self, box: Box) -> None:
        """Send SIGTERM from inside."""
        if box.state == "running":
            self._do(box, ends(0.0, 143, "stopped", "stopped by SIGTERM"))

    def pause(self, task: str, paused: bool) -> None:
        box = next(box for box in self.boxes.values() if box.task == task)
        box.state = "paused" if paused else "running"
        self._tell(box, "pause" if paused else "unpause")

    def lose(self) -> None:
        """Kill the engine: containers continue, and no question about them is answered."""
        self.lost = True
        self.hang_up()

    def shut_down(self) -> None:
        """Stop the engine: it first stops its containers, and then answers no more."""
        self.lost = True
        for box in self.boxes.values():
            self.stop_box(box)
        self.clock.at(4.0, self.hang_up)

    def come_back(self, *, ends: bool = False) -> None:
        """Start the engine again; without live-restore it `ends` containers that still run."""
        self.forget()
        self.lost = False
        if ends:
            for box in self.boxes.values():
                self.stop_box(box)
            self.forget()

    def _doing(self, box: Box, life: int, step: Step) -> Callable[[], None]:
        def do() -> None:
            alive = box.id in self.boxes and box.lives == life and box.state == "running"
            if alive:
                self._do(box, step)

        return do

    def _do(self, box: Box, step: Step) -> None:
        if step.line:
            box.log.append((self.clock.time(), step.line))
            if step.stderr:
                box.stderr.append(box.log[-1])
        if step.event:
            self._write(box, step)
        if step.oom:
            box.oom = True
            self._tell(box, "oom")
        if step.code is not None:
            self._die(box, step.code)
        self._notify()

    def _write(self, box: Box, step: Step) -> None:
        """Append to the task's progress file; the next time is a little later."""
        entry = {"time": self.clock.time(), "event": step.event, **(step.fields or {})}
        file = Path(box.output) / "progress" / f"{box.task}.jsonl"
        with contextlib.suppress(OSError), file.open("a") as lines:
            lines.write(json.dumps(entry) + "\n")

    def _die(self, box: Box, code: int) -> None:
        box.exit_code, box.state, box.finished = code, "exited", self.clock.time()
        self._tell(box, "die", code)
        policy, _, most = str(box.service["restart"]).partition(":")
        if policy == "on-failure" and code and not box.by_hand and box.restarts < int(most):
            box.state = "restarting"
            box.restarts += 1
            self.clock.at(BACKOFF_S, self._restarting(box))
        if box.leads and self._job_ended(box.cluster) is not None:
            for other in self._of(box.cluster):
                if not (other.leads or other.sidecar) and other.state == "running":
                    self._follow_the_leader(other)

    def _restarting(self, box: Box) -> Callable[[], None]:
        def start() -> None:
            if self.lost:
                self.clock.at(BACKOFF_S, start)
            elif box.id in self.boxes and box.state == "restarting":
                self.start(box)

        return start

    def _job_ended(self, cluster: str) -> int | None:
        """Returns the leader's exit code if it has ended with an end message, as its beacon would
        send it."""
        leader = next((box for box in self._of(cluster) if box.leads), None)
        if leader is None or leader.state != "exited" or leader.exit_code in (137, 139):
            return None
        return leader.exit_code

    def _follow_the_leader(self, box: Box) -> None:
        life = self.life(box)
        if not life.deaf:
            self.clock.at(life.after_job_s, self._doing(box, box.lives, life.last))

    def _of(self, cluster: str, run: str = "") -> list[Box]:
        boxes = (box for box in self.boxes.values() if box.cluster == cluster)
        return [box for box in boxes if run in ("", box.mark.get(labels.RUN))]

    def _box(self, container_id: str) -> Box:
        if container_id not in self.boxes:
            raise EngineError(f"the Docker engine refused: No such container: {container_id}")
        return self.boxes[container_id]
