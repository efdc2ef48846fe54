"""The training of one replica: begin or wait, make steps, end together with the others."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
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
from trainer.programs.training.checkpoints.files import what_is_left
from trainer.programs.training.errors import Diverged, in_short
from trainer.programs.training.graph_mode.graph.build import NOT_FINITE
from trainer.programs.training.graph_mode.graph.training_graph import TrainingGraph
from trainer.programs.training.graph_mode.job import GraphJob, GraphResult
from trainer.programs.training.graph_mode.options import GraphOptions
from trainer.programs.training.graph_mode.replica import Replica
from trainer.programs.training.graph_mode.saving.manager import CheckpointManager
from trainer.programs.training.graph_mode.saving.saver import Saved
from trainer.programs.training.graph_mode.session.report import Report
from trainer.programs.training.graph_mode.session.shutdown import BROKEN, FINISHED, Shutdown
from trainer.programs.training.graph_mode.session.startup import (
    begin_as_chief,
    wait_for_chief,
    wait_for_step,
)
from trainer.programs.training.graph_mode.session.step import Stepper
from trainer.programs.training.graph_mode.session.sync_thread import RoundsThread, stop_all_replicas
from trainer.programs.training.stop_reasons import NOTHING, STEPS, THRESHOLD

tf1 = tf.compat.v1


class Training:
    """One replica's training, in one session after the other if servers are lost."""

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
        self._manager = None
        if replica.is_chief:
            self._manager = CheckpointManager(
                graph.checkpoints, options.save_secs, job.milestone_steps, job.on_milestone
            )
        logs = output / FOLDER / TRAIN
        self._report = Report(options, progress, logs if replica.is_chief else None)
        self._report.show(graph.graph)
        if replica.is_chief:
            with graph.graph.as_default():
                placement.tell(progress, tf1.global_variables())
        self._shutdown = Shutdown(
            graph.counters, replica, self._report, self._manager,
            images_per_step=job.examples_per_batch * options.num_clones,
        )  # fmt: skip

    def attempt(self, target: str, config: tf1.ConfigProto) -> GraphResult:
        """Train to the end in one session; TensorFlow's errors if a server is lost."""
        session = tf1.Session(target, graph=self._graph.graph, config=config)
        try:
            if self._replica.is_chief:
                begin_as_chief(session, self._graph, self._replica, self._manager)
            else:
                wait_for_chief(session, self._graph, self._replica)
                wait_for_step(session, self._graph, self._job.startup_delay_steps)
            session.run(self._graph.initialize_local)
            result = self._train(session)
        except BaseException as problem:
            if self._manager and isinstance(problem, TrainerError):
                with contextlib.suppress(tf.errors.OpError):
                    self._shutdown.tell(session)
            # It takes long if the servers are gone, and nothing depends on it.
            threading.Thread(target=close, args=(session,), daemon=True).start()
            raise
        if target:
            KEPT.append(session)
        else:
            session.close()
        return result

    def _train(self, session: tf1.Session) -> GraphResult:
        self._shutdown.begin(session)
        reached = NOTHING
        while True:
            step, end_at = map(int, session.run(self._graph.now))
            self._report.begin(step, end_at)
            if step < end_at:
                reached = self._steps_or_diverged(session, step, end_at)
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
        """Make steps until the job's end; why it ended."""
        report, manager = self._report, self._manager
        rounds = None
        if self._graph.rounds and manager:
            rounds = RoundsThread(session, self._graph, manager, end_at)
        stepper = Stepper(session, self._graph)
        if rounds:
            rounds.start()
        pause = self._options.pause_ms / 1000
        reached = STEPS
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
        if rounds:
            rounds.end()
            if rounds.failure:
                raise rounds.failure
        if reached == THRESHOLD:
            stop_all_replicas(session, self._graph)
        return reached

    def _mark(self, session: tf1.Session, entry: int) -> None:
        """Set this replica's entry in SharedCounters.finished."""
        controls = self._graph.controls
        session.run(controls.finish, {controls.mark: entry})

    def _diverged(self, session: tf1.Session) -> NoReturn:
        """Stop all replicas: a rate that is too high for one is so for all."""
        step = int(session.run(self._graph.counters.global_step))
        self._mark(session, BROKEN)
        stop_all_replicas(session, self._graph)
        last = self._manager.last if self._manager else self._graph.checkpoints.newest()
        left = what_is_left(last and last.name)
        raise Diverged(
            f"the loss is not finite after step {step}; {left}; try a lower learning rate"
        )

    def save_by_hand(self) -> None:
        """On SIGUSR1 or `save-now`. What cannot be saved is said; the training goes on."""
        if self._manager:
            try:
                self._manager.ask()
            except (TrainerError, tf.errors.OpError) as problem:
                print(f"error: not saved by hand: {in_short(problem)}", file=sys.stderr, flush=True)

    def terminated(self) -> NoReturn:
        """SIGTERM: the chief saves, and the process is gone."""
        saved: Saved | None = None
        if self._manager:
            mailbox.leave_last_words("", mailbox.SAVING)
            with contextlib.suppress(tf.errors.OpError, TrainerError):
                saved = self._manager.save_before_the_end()
        message = f"stopped by SIGTERM; saved {saved.name}" if saved else "stopped by SIGTERM"
        print(message, flush=True)
        sys.stderr.flush()
        os._exit(EXIT_TERMINATED)


KEPT: list[tf1.Session] = []
"""Of servers. Letting go of one closes it, which waits for ever for a task that has left."""


def close(session: tf1.Session) -> None:
    """Close the session, if its servers still answer."""
    with contextlib.suppress(tf.errors.OpError):
        session.close()
