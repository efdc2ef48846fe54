"""How replicas end together: none leaves before the chief has saved what all have done."""

from __future__ import annotations

import time

import tensorflow as tf

from trainer.agent.injected import mailbox
from trainer.programs.training.errors import Diverged
from trainer.programs.training.graph_mode.counters import SharedCounters, Shares, assign, shares
from trainer.programs.training.graph_mode.job import GraphResult
from trainer.programs.training.graph_mode.replica import Replica
from trainer.programs.training.graph_mode.saving.manager import CheckpointManager
from trainer.programs.training.graph_mode.session.report import Report
from trainer.programs.training.speed import per_second

tf1 = tf.compat.v1
FINISHED, BROKEN = 1, 2
"""A replica's entry in SharedCounters.finished: it has ended well, or its loss was not finite."""
WAIT_FOR_LAST_STEPS_S = 5.0
JOB_ENDED_S = 3.0
POLL_S = 0.1


class Shutdown:
    """One replica's view of the end; `manager` only on the chief."""

    def __init__(
        self,
        counters: SharedCounters,
        replica: Replica,
        report: Report,
        manager: CheckpointManager | None,
        images_per_step: int,
    ) -> None:
        self._counters = counters
        self._replica = replica
        self._report = report
        self._manager = manager
        self._images_per_step = images_per_step
        self._made_before: int | None = None

    def begin(self, session: tf1.Session) -> None:
        """Steps of earlier runs are not of this one."""
        if self._made_before is None:
            self._made_before = sum(self._shares(session).steps)

    def tell(self, session: tf1.Session) -> None:
        """By the chief: the other replicas may leave."""
        assign(session, self._counters.over, 1)

    def is_over(self, session: tf1.Session) -> bool:
        """Wait for the chief's word; False if it was lost with the last steps, and goes back."""
        counters = self._counters
        while True:
            try:
                step, end_at, over = session.run(
                    [counters.global_step, counters.end_at, counters.over]
                )
            except tf.errors.OpError:
                if ended_within(JOB_ENDED_S):
                    return True
                raise
            if over:
                return True
            if step < end_at:
                return False
            time.sleep(POLL_S)

    def wait_for_last_steps(self, session: tf1.Session) -> None:
        """Block until no replica updates any more: then the last checkpoint holds every step."""
        until = time.monotonic() + WAIT_FOR_LAST_STEPS_S
        while True:
            step, finished = session.run([self._counters.global_step, self._counters.finished])
            broken = [name for name, how in zip(self._replica.names, finished)
                      if how == BROKEN]  # fmt: skip
            if broken:
                raise Diverged(
                    f"the loss of {', '.join(broken)} is not finite after step {step};"
                    f" {self._manager.what_is_left()}; try a lower learning rate"
                )
            if all(finished) or time.monotonic() > until:
                return
            time.sleep(POLL_S / 2)

    def result(self, session: tf1.Session, reached: str) -> GraphResult:
        report = self._report
        all_shares = self._shares(session)
        report.close()
        step = int(session.run(self._counters.global_step))
        first, last = report.first or (step, 0.0), report.last or (step, 0.0)
        seconds = last[1] - first[1]
        images = (sum(all_shares.steps) - self._made_before) * self._images_per_step
        return GraphResult(
            step=step,
            reached=reached,
            is_chief=self._replica.is_chief,
            loss=report.loss,
            shown=report.shown,
            checkpoint=self._manager.last.path if self._manager and self._manager.last else None,
            seconds=round(seconds, 3),
            updates_per_second=per_second(first, last) or None,
            images_per_second=round(images / seconds, 2) if seconds else None,
            steps_of=dict(zip(self._replica.names, all_shares.steps)),
            staleness_mean=all_shares.staleness_mean,
            staleness_max=all_shares.staleness_max,
        )

    def _shares(self, session: tf1.Session) -> Shares:
        return shares(session.run(list(self._counters.counts)))


def ended_within(seconds: float) -> bool:
    """Whether the supervisor says that the job has ended; True if there is none."""
    until = time.monotonic() + seconds
    while not mailbox.job_has_ended() and time.monotonic() < until:
        time.sleep(POLL_S)
    return mailbox.job_has_ended()
