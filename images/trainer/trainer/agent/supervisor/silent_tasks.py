"""Tasks that are there and say nothing: frozen, or cut off from the leader."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping

from trainer.agent import outcome
from trainer.agent.beacon.heard import HeardAgain, Silent, Unanswered
from trainer.agent.outcome import Outcome
from trainer.agent.progress_file import Progress
from trainer.agent.servers.watch import PATIENCE
from trainer.agent.task import EVALUATOR
from trainer.contract import endings, heartbeat
from trainer.contract.times import HELP_S

LATELY_S = 30.0
"""TensorFlow may fail this long after a task was silent, and because of that."""


class SilentTasks:
    """Says each silence once, and ends the job if nobody helps; all of one attempt."""

    def __init__(self, silent_s: float, progress: Progress, leader: str) -> None:
        self._silent_s = silent_s
        self._progress = progress
        self._leader = leader
        self._said: set[str] = set()
        self._lately: dict[str, tuple[float, float]] = {}
        self._unanswered: dict[tuple[str, str], tuple[float, float]] = {}

    def heard(self, event: Silent | HeardAgain) -> Outcome | None:
        """Write it down; an Outcome if a task that is needed has been silent for too long."""
        if isinstance(event, HeardAgain):
            self._lately[event.task] = (time.monotonic(), event.seconds)
            if event.task in self._said:
                self._progress.write("heard", of=event.task, seconds=round(event.seconds, 1))
            self._said.discard(event.task)
            return None
        last_heard = time.time() - event.seconds
        message = heartbeat.sentence(event.task, event.seconds, last_heard, server=event.server)
        if event.task not in self._said:
            self._said.add(event.task)
            self._progress.write(
                "silent", of=event.task, last_heard=round(last_heard, 3), server=event.server
            )
            print(f"{self._leader}: {message}", file=sys.stderr, flush=True)
        patience_s = self._silent_s * (PATIENCE if event.server else 1)
        if event.task.startswith(EVALUATOR) or event.seconds < patience_s + HELP_S:
            return None
        return outcome.because(endings.SILENT, message, (event.task,))

    def between(self, event: Unanswered, quiet: Mapping[str, float]) -> None:
        """Write down that two tasks hear the leader, but not each other.

        Args:
            event: what one of them says.
            quiet: who says nothing to the leader now: not answered by anybody, that is.
        """
        if {event.task, event.by} & {*quiet, *self._said}:
            return
        now, pair = time.monotonic(), (event.task, event.by)
        at, _ = self._unanswered.get(pair, (-LATELY_S, 0.0))
        self._unanswered[pair] = (now, event.seconds)
        if now - at < LATELY_S:
            return
        self._progress.write(
            "unanswered", of=event.task, by=event.by, seconds=round(event.seconds, 1)
        )
        print(f"{self._leader}: {no_answer(event)}", file=sys.stderr, flush=True)

    def cuts(self) -> list[str]:
        """Between whom the network was cut within LATELY_S: a sentence each."""
        return [no_answer(event) for event in self._lately_unanswered()]

    def cut_tasks(self) -> tuple[str, ...]:
        """The tasks at both ends of these cuts."""
        ends = (name for event in self._lately_unanswered() for name in (event.by, event.task))
        return tuple(dict.fromkeys(ends))

    def _lately_unanswered(self) -> list[Unanswered]:
        since = time.monotonic() - LATELY_S
        return [
            Unanswered(task, by, seconds)
            for (task, by), (at, seconds) in self._unanswered.items()
            if at > since
        ]

    def gone(self, task: str) -> None:
        """It is no longer silent, but away, or there again in a new run."""
        self._said.discard(task)

    def lately(self, quiet: Mapping[str, float]) -> list[str]:
        """Who was silent within LATELY_S, or is `quiet` now: 'worker-1 was silent for 9 s'."""
        since = time.monotonic() - LATELY_S
        silences = {task: length for task, (at, length) in self._lately.items() if at > since}
        silences |= quiet
        return [
            f"{task} was silent for {seconds:.0f} s"
            for task, seconds in silences.items()
            if not task.startswith(EVALUATOR)
        ] + self.cuts()


def no_answer(event: Unanswered) -> str:
    """A sentence about two tasks that do not reach each other."""
    return (
        f"{event.by} has had no answer from {event.task} for {event.seconds:.0f} s"
        " (the network between them is cut; both answer the leader)"
    )
