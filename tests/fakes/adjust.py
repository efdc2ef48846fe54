"""What drills and users do to simulated containers, and inside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cluster_kit.errors import EngineError
from cluster_kit.platforms.engine import CommandOutput, Helper
from tests.fakes.acting import Life
from tests.fakes.box import Box
from tests.fakes.clock import Clock
from tests.fakes.machine import Machine

NO_ANSWER = "the Docker engine does not answer: Connection refused"


class Adjusted(Machine):
    """See `cluster_kit.platforms.docker.docker_engine`.

    `on_call` is called with the name of each method before it does anything. With `heeds_limits` a
    container that reaches its memory limit is killed.
    """

    def __init__(self, clock: Clock, acting: Mapping[str, Sequence[Life]] | None = None) -> None:
        super().__init__(clock, acting)
        self.on_call: Callable[[str], None] = lambda _name: None
        self.executed: list[tuple[str, str]] = []
        self.cpus: list[tuple[str, float]] = []
        self.weighed: list[str] = []
        self.memory: list[tuple[str, int, bool]] = []
        self.heeds_limits = True
        self.helpers: list[Helper] = []
        self.helper_says = "ready"

    def ask(self, container_id: str, command: Sequence[str], within_s: int) -> CommandOutput:
        self._asked("ask")
        if "oom_score_adj" in " ".join(command):
            return CommandOutput(self._exhaust(self._box(container_id), int(command[-1])))
        task, words = self._box(container_id).task, " ".join(command)
        code = 1 if words == "false" else 0
        return CommandOutput(f"{task}: {words} within {within_s} s\n", code)

    def _exhaust(self, box: Box, most: int) -> str:
        """A process inside takes `most` bytes, which is too much if the container may have no
        more."""
        if not self.heeds_limits or box.memory is None or box.memory > most:
            return f"{most >> 20} MiB were taken\n"
        self.run_out(box)
        return ""

    def execute(self, container_id: str, command: Sequence[str]) -> None:
        """Act like the shell commands of drills; other commands do nothing."""
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

    def weigh_as_usual(self, container_id: str) -> None:
        self._asked("weigh_as_usual")
        self.weighed.append(self._box(container_id).task)

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

    def end(self, container_id: str) -> None:
        self._asked("end")
        self.stop_box(self._box(container_id))

    def start_again(self, container_id: str) -> None:
        self._asked("start_again")
        self.start(self._box(container_id))

    def start_helper(self, cluster: str, chosen: Helper) -> str:
        self._asked("start_helper")
        assert all(box.cluster == cluster for box in self.boxes.values())
        self.helpers.append(chosen)
        return self.helper_says

    def _asked(self, name: str) -> None:
        self.on_call(name)
        if self.lost:
            raise EngineError(NO_ANSWER, "start it (`make engine`)")
