"""The life of a replica: begin or wait, make steps, end together with the others."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import tensorflow as tf

from trainer.errors import EXIT_TERMINATED, TrainerError
from trainer.events import Progress
from trainer.injected import mailbox
from trainer.servers import probe
from trainer.training.errors import Diverged, in_short
from trainer.training.graph_mode.graph.build import NO_NUMBER, TrainingGraph
from trainer.training.graph_mode.graph.updates import start_rounds
from trainer.training.graph_mode.job import NOTHING, STEPS, THRESHOLD, GraphJob, GraphResult
from trainer.training.graph_mode.options import GraphOptions
from trainer.training.graph_mode.replica import Replica
from trainer.training.graph_mode.report import Report
from trainer.training.graph_mode.saving.manager import Keeper
from trainer.training.graph_mode.saving.saver import Saved, what_is_left
from trainer.training.graph_mode.shutdown import BROKEN, FINISHED, Ending
from trainer.training.graph_mode.step import Stepper
from trainer.training.graph_mode.sync_thread import RoundsThread, stop_everybody

tf1 = tf.compat.v1
WAIT_FOR_OTHERS_S = 30.0
POLL_S = 0.1
QUIET_S = 2.0


class Training:
    """One replica's training, in one session after the other where servers were lost."""

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
        self._keeper = None
        if replica.is_chief:
            self._keeper = Keeper(graph.checkpoints, options.save_secs, job.milestone_steps)
        logs = output / "tensorboard" / "train"
        self._report = Report(options, progress, logs if replica.is_chief else None)
        self._ending = Ending(
            graph.ledger, replica, self._report, self._keeper,
            images_per_step=job.examples_per_batch * options.num_clones,
        )  # fmt: skip

    def attempt(self, target: str, config: tf1.ConfigProto) -> GraphResult:
        """Train to the end in one session; TensorFlow's errors where a server is lost."""
        session = tf1.Session(target, graph=self._graph.graph, config=config)
        try:
            if self._replica.is_chief:
                self._begin(session)
            else:
                self._wait_for_chief(session)
            session.run(self._graph.initialize_local)
            result = self._train(session)
        except BaseException as problem:
            if self._keeper and isinstance(problem, TrainerError):
                with contextlib.suppress(tf.errors.OpError):
                    self._ending.tell(session)
            # In vain, and for long, where the servers are gone: so nobody waits for it.
            threading.Thread(target=close, args=(session,), daemon=True).start()
            raise
        if not target:
            session.close()
        return result

    def _begin(self, session: tf1.Session) -> None:
        """Restore or initialise, then let the others in."""
        restored = self._graph.checkpoints.restore(session)
        if restored is None:
            session.run(self._graph.initialize)
        session.run(self._graph.initialize_run)
        if restored:
            print(f"going on at global step {restored.step} ({restored.name})", flush=True)
        self._keeper.begin(session, restored)
        if self._replica.deployment.distributed:
            self._wait_for_others()
        if self._graph.rounds:
            start_rounds(self._graph.rounds, self._graph.ledger.global_step, session)

    def _wait_for_others(self) -> None:
        """Training starts together where it can, so that shares and speeds mean something."""
        others = self._replica.others
        print(f"waiting for {', '.join(others)}", flush=True)
        answer = probe.wait_for(others, WAIT_FOR_OTHERS_S)
        if isinstance(answer, probe.ServersMissing):
            print(f"not there yet: {answer}", file=sys.stderr, flush=True)

    def _wait_for_chief(self, session: tf1.Session) -> None:
        said, since = False, time.monotonic()
        while len(session.run(self._graph.uninitialized)):
            time.sleep(POLL_S)
            if not said and time.monotonic() - since > QUIET_S:
                print(f"waiting for {self._replica.chief} to initialise", flush=True)
                said = True

    def _train(self, session: tf1.Session) -> GraphResult:
        self._ending.begin(session)
        reached = NOTHING
        while True:
            step, end_at = map(int, session.run(self._graph.standing))
            self._report.begin(step)
            if step < end_at:
                reached = self._steps_or_diverged(session, step, end_at)
            session.run(self._graph.finish, {self._graph.mark: FINISHED})
            if self._keeper:
                self._ending.wait_for_last_steps(session)
                if reached != NOTHING:
                    self._keeper.save_last()
            result = self._ending.result(session, reached)
            if self._keeper:
                self._ending.tell(session)
                return result
            if self._ending.is_over(session):
                return result
            session.run(self._graph.finish, {self._graph.mark: 0})

    def _steps_or_diverged(self, session: tf1.Session, step: int, end_at: int) -> str:
        try:
            return self._steps(session, step, end_at)
        except tf.errors.InvalidArgumentError as problem:
            if NO_NUMBER not in str(problem):
                raise
            self._diverged(session)

    def _steps(self, session: tf1.Session, step: int, end_at: int) -> str:
        """Make steps until the job's end; why it ended."""
        report, keeper = self._report, self._keeper
        rounds = None
        if self._graph.rounds and keeper:
            rounds = RoundsThread(session, self._graph, keeper, end_at)
        stepper = Stepper(session, self._graph)
        if rounds:
            rounds.start()
        pause = self._options.pause_ms / 1000
        reached = STEPS
        while step < end_at:
            taken = stepper.take(report.wants_shown, report.wants_summary)
            step, end_at = taken.step, taken.end_at
            self.steps_made += 1
            report.took(taken)
            if keeper:
                if not rounds and step < end_at:
                    keeper.between_updates(step)
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
            stop_everybody(session, self._graph)
        return reached

    def _diverged(self, session: tf1.Session) -> NoReturn:
        """Stop all replicas: a rate that is too high for one is so for all."""
        step = int(session.run(self._graph.ledger.global_step))
        session.run(self._graph.finish, {self._graph.mark: BROKEN})
        stop_everybody(session, self._graph)
        last = self._keeper.last if self._keeper else self._graph.checkpoints.newest()
        left = what_is_left(last and last.name)
        raise Diverged(
            f"the loss is no number after step {step}; {left}; try a lower learning rate"
        )

    def save_by_hand(self) -> None:
        """On SIGUSR1 or `save-now`. What cannot be saved is said; the training goes on."""
        if self._keeper:
            try:
                self._keeper.ask()
            except (TrainerError, tf.errors.OpError) as problem:
                print(f"error: not saved by hand: {in_short(problem)}", file=sys.stderr, flush=True)

    def terminated(self) -> NoReturn:
        """SIGTERM: the chief saves, and the process is gone."""
        saved: Saved | None = None
        if self._keeper:
            mailbox.leave_last_words("", mailbox.SAVING)
            with contextlib.suppress(tf.errors.OpError, TrainerError):
                saved = self._keeper.save_before_the_end()
        said = f"stopped by SIGTERM; saved {saved.name}" if saved else "stopped by SIGTERM"
        print(said, flush=True)
        sys.stderr.flush()
        os._exit(EXIT_TERMINATED)


def close(session: tf1.Session) -> None:
    with contextlib.suppress(tf.errors.OpError):
        session.close()
