"""The progress line: steps, speed and remaining time, or what the job waits for. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from cluster_kit.contract.events import Epoch, Functions, Start, Step, Training
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.roles import ROLES
from cluster_kit.util.terminal import counted, duration

RECENT = 10
"""Number of the leader's last reports from which the current speed is computed."""
SETTLED = 5
"""Number of reports after the first one that make a rate count, even if they differ much."""
MOST_NAMED = 3


@dataclass(frozen=True)
class Progress:
    """`step` of `steps` (None if the last step is unknown), and the rate of the last reports; it is
    None and the job `stands` if no step is made now.

    `epoch` is the last finished one. The rate is `settled` if it is the speed of the training: a
    program's first report includes the time to build graphs.
    """

    step: int
    steps: int | None
    steps_per_s: float | None
    images_per_step: float | None
    epoch: int | None
    settled: bool
    stands: bool = False

    @property
    def share(self) -> float | None:
        """The finished share, 0 to 1."""
        return min(1.0, self.step / self.steps) if self.steps else None

    @property
    def left_s(self) -> float | None:
        """Seconds to the end at this rate; None if unknown."""
        if not (self.steps and self.steps_per_s and self.settled):
            return None
        return max(0.0, self.steps - self.step) / self.steps_per_s

    @property
    def words(self) -> str:
        """`step 240 of 360, 2 s left, 66 steps/s, 2,112 images/s`: the end can be cut off."""
        parts = [f"step {self.step:,}" + (f" of {self.steps:,}" if self.steps else "")]
        if self.stands:
            parts.append("no steps now")
        if self.left_s:
            parts.append(f"{duration(self.left_s, digits=0)} left")
        if self.steps_per_s:
            parts.append(f"{self.steps_per_s:.3g} steps/s")
            if self.images_per_step:
                parts.append(f"{self.steps_per_s * self.images_per_step:,.0f} images/s")
        if self.epoch is not None:
            parts.append(f"{counted(self.epoch, 'epoch')} done")
        return ", ".join(parts)


def progress_of(seen: RunState) -> Progress | None:
    """The leader's progress since its last start; None before its first step, and after its end."""
    leader = seen.tasks[seen.leader]
    if leader.state is not State.TRAINING or leader.step is None:
        return None
    rates: list[float] = []
    steps: float | None = None
    images_per_step: float | None = None
    epoch: int | None = None
    for entry in reversed(seen.entries):
        if entry.task != seen.leader:
            continue
        match entry.event:
            case Step(steps_per_s=rate) if rate and len(rates) < RECENT:
                rates.append(rate)
            case Epoch(epoch=float() | int() as done) if epoch is None:
                epoch = int(done)
            case Training() as training:
                steps = training.steps if steps is None else steps
                if images_per_step is None:
                    images_per_step = training.images_per_step
            case Start():
                break
    later = rates[:-1] if len(rates) < RECENT else rates  # without the first report of this start
    stands = bool(rates) and leader.steps_per_s == 0
    return Progress(
        step=leader.step,
        steps=None if steps is None else int(steps),
        steps_per_s=statistics.median(later or rates) if rates and not stands else None,
        images_per_step=images_per_step,
        epoch=epoch,
        settled=len(later) >= SETTLED or (len(later) > 1 and max(later) <= 2 * min(later)),
        stands=stands,
    )


def waited_for(seen: RunState) -> str:
    """A text about what the job waits for: tasks, its first step, or functions; "" if nothing."""
    leader = seen.tasks[seen.leader]
    if leader.state in (State.READY, State.TRAINING) and (functions := _functions(seen)):
        return functions
    if leader.state not in (State.CREATED, State.RUNNING, State.READY):
        return ""
    # Once its servers answer, the leader does not know how far other programs are that run.
    running = [] if leader.state is State.READY else [State.RUNNING]
    late = [
        f"{task.name} ({task.state})"
        for task in seen.tasks.values()
        if task.state in (State.CREATED, State.RESTARTING, *running)
        and task.name != seen.leader
        and ROLES[task.role].trains
    ]
    if not late:
        answer = "all servers answer, " if seen.servers else ""
        return f"{answer}no step reported yet" if leader.state is State.READY else ""
    more = f" and {len(late) - MOST_NAMED} more" if len(late) > MOST_NAMED else ""
    return f"waits for {', '.join(late[:MOST_NAMED])}{more}"


def _functions(seen: RunState) -> str:
    """The functions of a coordinator that its program waits for now; "" if it does not."""
    for entry in reversed(seen.entries):
        if entry.task != seen.leader:
            continue
        match entry.event:
            case Functions(done=float() | int() as done, of=float() | int() as of) if done < of:
                return f"{seen.leader} waits for functions: {done:,.0f} of {of:,.0f} done"
            case Functions() | Step() | Epoch() | Start():
                break
    return ""
