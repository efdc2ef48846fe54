"""Simulated jobs: what each task does in a second, observed once a second."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainer.agent.straggler_rule import Straggled, Stragglers, Straggling
from trainer.agent.usage import Usage

ONE, TWO, THREE = "worker-0", "worker-1", "worker-2"
WORKERS = (ONE, TWO)


@dataclass(frozen=True)
class Second:
    """What a task does in a second: its steps, and its resource use."""

    steps: float | None = None
    cpus: float = 0.5
    throttled: float = 0.0
    sent: int = 0
    received: int = 0
    faults: int = 0


class Job:
    """A clock, counters, and the findings so far as (second, finding)."""

    def __init__(
        self,
        *groups: tuple[str, ...],
        limits: Mapping[str, Usage] | None = None,
        in_turns: Sequence[str] = (),
    ) -> None:
        self.rule = Stragglers(groups or (WORKERS,), in_turns)
        self.now = 1000.0
        self.found: list[tuple[float, Straggling | Straggled]] = []
        self._steps: dict[str, float] = {}
        self._used = dict(limits or {})

    def run(self, seconds: int, does: Mapping[str, Second], job_steps: float = 0.0) -> None:
        """Let the tasks do the same for this number of seconds."""
        for _ in range(seconds):
            self.now += 1
            for task, second in does.items():
                self._one(task, second)
            if job_steps and int(self.now * job_steps) != int((self.now - 1) * job_steps):
                self.rule.moved(self.now)
            self.rule.used(self.now, self._used)
            self.found += [(self.now - 1000, one) for one in self.rule.look(self.now)]

    def _one(self, task: str, second: Second) -> None:
        if second.steps is not None:
            self._steps[task] = self._steps.get(task, 0.0) + second.steps
            self.rule.made(self.now, task, int(self._steps[task]))
        was = self._used.get(task, Usage())
        self._used[task] = replace(
            was,
            cpu_s=was.cpu_s + second.cpus,
            throttled_s=was.throttled_s + second.throttled,
            sent=was.sent + second.sent,
            received=was.received + second.received,
            faults=was.faults + second.faults,
        )

    def started_again(self, task: str) -> None:
        """Restart a task: its program begins again."""
        self._steps.pop(task, None)
        if over := self.rule.forget(self.now, task):
            self.found.append((self.now - 1000, over))

    @property
    def begun(self) -> list[tuple[float, Straggling]]:
        return [one for one in self.found if isinstance(one[1], Straggling)]

    @property
    def ended(self) -> list[tuple[float, Straggled]]:
        return [one for one in self.found if isinstance(one[1], Straggled)]


def steps(*rates: float | None) -> dict[str, Second]:
    """Returns tasks with these steps per second: worker-0, worker-1 and so on."""
    return {f"worker-{index}": Second(rate) for index, rate in enumerate(rates)}


Play = Callable[[Job], None]
