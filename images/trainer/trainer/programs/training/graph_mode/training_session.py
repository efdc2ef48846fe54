"""The training of one replica: starts or waits, makes steps, and ends together with the others.

No replica ends before the chief has saved the steps of all replicas.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import NoReturn

import tensorflow as tf

from trainer.agent.errors import TrainerError
from trainer.agent.injected import mailbox
from trainer.agent.progress_file import Progress
from trainer.contract.endings import EXIT_TERMINATED
from trainer.programs.training import placement
from trainer.programs.training.board import FOLDER, TRAIN
from trainer.programs.training.checkpoint_files import last_good_clause
from trainer.programs.training.graph_mode.checkpoint_saver import CheckpointManager, Saved, newest
from trainer.programs.training.graph_mode.counters import SharedCounters, Shares, assign, shares
from trainer.programs.training.graph_mode.job import GraphJob, GraphResult
from trainer.programs.training.graph_mode.options import GraphOptions
from trainer.programs.training.graph_mode.replica import Replica
from trainer.programs.training.graph_mode.replica_graph import NOT_FINITE, TrainingGraph
from trainer.programs.training.graph_mode.session_start import (
    RoundsThread,
    begin_as_chief,
    stop_all_replicas,
    wait_for_chief,
    wait_for_step,
)
from trainer.programs.training.graph_mode.steps import Report, Stepper
from trainer.programs.training.program import (
    NOTHING,
    STEPS,
    THRESHOLD,
    Diverged,
    checkpoint_directory,
    headline,
)
from trainer.programs.training.result import per_second

tf1 = tf.compat.v1
FINISHED, BROKEN = 1, 2
"""Values in SharedCounters.finished: a replica ended normally, or its loss was not finite."""
WAIT_FOR_LAST_STEPS_S = 5.0
JOB_ENDED_S = 3.0
POLL_S = 0.1
NOT_SAVED = (TrainerError, tf.errors.OpError)


class Shutdown:
    """The end of the training, as seen by one replica; only the chief has a `manager`."""

    def __init__(
        self,
        counters: SharedCounters,
        replica: Replica,
        report: Report,
        manager: CheckpointManager | None,
        job: GraphJob,
        examples_per_step: int,
    ) -> None:
        self._counters = counters
        self._replica = replica
        self._report = report
        self._manager = manager
        self._examples = job.examples
        self._examples_per_step = examples_per_step
        self._made_before: int | None = None

    def begin(self, session: tf1.Session) -> None:
        """Note the number of steps made before this run, which do not count."""
        if self._made_before is None:
            self._made_before = sum(self._shares(session).steps)

    def tell(self, session: tf1.Session) -> None:
        """Called by the chief: notify the other replicas that they can end."""
        assign(session, (self._counters.over, 1))

    def is_over(self, session: tf1.Session) -> bool:
        """Wait for the chief's notice and return True.

        Returns False if the chief was lost and resumed from an earlier checkpoint, so that the
        last steps must be repeated.
        """
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
        """Block until no replica makes updates any more, so that the last checkpoint contains every
        step."""
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
        batches = sum(all_shares.steps) - self._made_before
        examples = batches * self._examples_per_step
        return GraphResult(
            step=step,
            reached=reached,
            is_chief=self._replica.is_chief,
            loss=report.loss,
            shown=report.shown,
            checkpoint=self._manager.last.path if self._manager and self._manager.last else None,
            seconds=round(seconds, 3),
            updates_per_second=per_second(first, last) or None,
            examples=self._examples,
            examples_per_second=round(examples / seconds, 2) if seconds else None,
            steps_of=dict(zip(self._replica.names, all_shares.steps)),
            staleness_mean=all_shares.staleness_mean,
            staleness_max=all_shares.staleness_max,
        )

    def _shares(self, session: tf1.Session) -> Shares:
        return shares(session.run(list(self._counters.counts)))


def ended_within(seconds: float) -> bool:
    """Returns whether the supervisor reports within this time that the job has ended; True without
    a supervisor."""
    until = time.monotonic() + seconds
    while not mailbox.job_has_ended() and time.monotonic() < until:
        time.sleep(POLL_S)
    return mailbox.job_has_ended()


class Training:
    """One replica's training; after a loss of servers it continues in a new session."""

    def __init__(
        self,
        graph: TrainingGraph,
        options: GraphOptions,
        replica: Replica,
        job: GraphJob,
        output: Path,
        progress: Progress | None,
    ) -> None:
        self.steps_made = 0
        self._graph = graph
        self._options = options
        self._replica = replica
        self._job = job
        self._checkpoints = checkpoint_directory(output)
        self._manager = None
        if replica.is_chief:
            self._manager = CheckpointManager(
                graph.checkpoints, options.save_secs, job.milestone_steps, job.on_milestone
            )
        logs = output / FOLDER / TRAIN
        examples = job.examples_per_batch * options.num_clones
        self._report = Report(
            options,
            progress,
            logs if replica.is_chief else None,
            examples * (replica.gradients_per_round or 1) if job.examples == "images" else None,
        )
        self._report.show(graph.graph)
        if replica.is_chief:
            with graph.graph.as_default():
                placement.tell(progress, tf1.global_variables())
        self._shutdown = Shutdown(
            graph.counters, replica, self._report, self._manager, job, examples
        )

    def attempt(self, target: str, config: tf1.ConfigProto) -> GraphResult:
        """Train to the end in one session; raises TensorFlow's errors if a server is lost."""
        session = tf1.Session(target, graph=self._graph.graph, config=config)
        if target:
            KEPT.append(session)
        try:
            if self._replica.is_chief:
                begin_as_chief(session, self._graph, self._replica, self._manager)
            else:
                wait_for_chief(session, self._graph, self._replica)
                wait_for_step(session, self._graph, self._job.startup_delay_steps)
            session.run(self._graph.initialize_local)
            return self._train(session)
        except BaseException as problem:
            if self._manager:
                if isinstance(problem, TrainerError):
                    with contextlib.suppress(tf.errors.OpError):
                        self._shutdown.tell(session)
                self._manager.end()
            raise
        finally:
            if not target:
                session.close()

    def _train(self, session: tf1.Session) -> GraphResult:
        self._shutdown.begin(session)
        reached = NOTHING
        while True:
            step, end_at = map(int, session.run(self._graph.now))
            self._report.begin(step, end_at)
            if step < end_at:
                reached = self._steps_or_diverged(session, step, end_at)
            elif self._manager and self._manager.lacks(step):
                reached = STEPS  # by the other replicas, while this one began again
            self._mark(session, FINISHED)
            if self._manager:
                self._shutdown.wait_for_last_steps(session)
                if reached != NOTHING:
                    self._manager.save_last()
            result = self._shutdown.result(session, reached)
            if self._manager:
                self._shutdown.tell(session)
                return result
            if self._shutdown.is_over(session):
                return result
            self._mark(session, 0)

    def _steps_or_diverged(self, session: tf1.Session, step: int, end_at: int) -> str:
        try:
            return self._steps(session, step, end_at)
        except tf.errors.InvalidArgumentError as problem:
            if NOT_FINITE not in str(problem):
                raise
            self._diverged(session)

    def _steps(self, session: tf1.Session, step: int, end_at: int) -> str:
        """Make steps until the job's end; return why it ended."""
        report, manager = self._report, self._manager
        rounds = None
        if self._graph.rounds and manager:
            rounds = RoundsThread(session, self._graph, manager, end_at)
        stepper = Stepper(session, self._graph)
        if rounds:
            rounds.start()
        pause = self._options.pause_ms / 1000
        reached = STEPS
        try:
            while step < end_at:
                result = stepper.take(report.wants_shown, report.wants_summary)
                step, end_at = result.step, result.end_at
                self.steps_made += 1
                report.record(result)
                if manager:
                    if not rounds and step < end_at:
                        manager.between_updates(step)
                    if report.below_threshold():
                        reached = THRESHOLD
                        break
                if pause:
                    time.sleep(pause)
        finally:
            if rounds:
                rounds.end()
        if rounds and rounds.failure:
            raise rounds.failure
        if reached == THRESHOLD:
            stop_all_replicas(session, self._graph)
        return reached

    def _mark(self, session: tf1.Session, entry: int) -> None:
        """Set this replica's entry in SharedCounters.finished."""
        controls = self._graph.controls
        session.run(controls.finish, {controls.mark: entry})

    def _diverged(self, session: tf1.Session) -> NoReturn:
        """Stop all replicas: a learning rate that is too high for one replica is too high for
        all."""
        step = int(session.run(self._graph.counters.global_step))
        self._mark(session, BROKEN)
        stop_all_replicas(session, self._graph)
        last = self._manager.last if self._manager else newest(self._checkpoints)
        left = last_good_clause(last and last.name)
        raise Diverged(
            f"the loss is not finite after step {step}; {left}; try a lower learning rate"
        )

    def save_by_hand(self) -> None:
        """Save on SIGUSR1 or `save-now`; an error is printed, and training continues."""
        if self._manager:
            try:
                self._manager.ask()
            except NOT_SAVED as problem:
                print(
                    f"error: the requested save failed: {headline(problem)}",
                    file=sys.stderr,
                    flush=True,
                )

    def terminated(self) -> NoReturn:
        """Handle SIGTERM: the chief saves, and the process ends."""
        saved: Saved | None = None
        if self._manager:
            mailbox.leave_last_words("", mailbox.SAVING)
            with contextlib.suppress(*NOT_SAVED):
                saved = self._manager.save_before_the_end()
        message = f"stopped by SIGTERM; saved {saved.name}" if saved else "stopped by SIGTERM"
        print(message, flush=True)
        sys.stderr.flush()
        os._exit(EXIT_TERMINATED)


KEPT: list[tf1.Session] = []
"""Sessions that use servers; none is closed or deleted.

Closing one can wait forever for an ended task. After a loss of a ps, TensorFlow needs 6 to 60 s
longer to create the next session while the lost one is being closed.
"""
