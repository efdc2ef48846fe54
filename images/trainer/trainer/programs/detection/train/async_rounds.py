"""The coordinator's training loop: rounds of steps, reports, and checkpoints between rounds."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf

from trainer.agent.injected import mailbox
from trainer.agent.progress_file import Progress
from trainer.contract.endings import EXIT_TERMINATED
from trainer.programs.detection.options import Options
from trainer.programs.detection.train.checkpoint_manager import CheckpointManager
from trainer.programs.training import placement
from trainer.programs.training.board import TRAIN, Board
from trainer.programs.training.optimizers import updates
from trainer.programs.training.program import NOTHING, STEPS, THRESHOLD, Diverged
from trainer.programs.training.result import per_second

NOT_FINITE = "the loss is not finite"
"""A part of TensorFlow's message that identifies the error of a diverged training."""
LOOK_S, EVENT_S = 0.02, 1.0
SHOWN = ("loss", "localization", "classification")


class AsyncRounds:
    """Runs rounds of steps.

    The optimizer counts steps on the ps: the step of a lost worker is repeated, and may count
    twice.
    """

    def __init__(
        self,
        coordinator: tf.distribute.coordinator.ClusterCoordinator,
        step: Callable[[Any], tf.Tensor],
        batches: Any,
        network: tf.keras.Model,
        optimizer: tf.keras.optimizers.Optimizer,
        options: Options,
        progress: Progress | None,
    ) -> None:
        self._coordinator, self._function, self._batches = coordinator, step, batches
        self._optimizer, self._network = optimizer, network
        self._options = options
        self._progress = progress
        self._manager = CheckpointManager(options.output, options.graph.keep, network, optimizer)
        self._board = Board(options.output, TRAIN)
        self._train = options.pipeline.train_config
        every = (options.round_steps, options.graph.log_steps, options.graph.summary_steps)
        self._round_steps = min(steps for steps in every if steps)
        self._begun = False
        self._event: tuple[int, float] | None = None
        self._first: tuple[int, float] | None = None
        self._last: tuple[int, float] | None = None
        self._loss: float | None = None

    @property
    def step(self) -> int:
        return updates(self._optimizer)

    @property
    def checkpoint(self) -> str:
        """The prefix of the last checkpoint."""
        return self._manager.last.path

    def metrics(self) -> dict[str, float | int]:
        """Returns the final metrics; the speed excludes the first round, which traces functions."""
        figures: dict[str, float | int] = {"updates": self.step}
        if self._loss is not None:
            figures["loss"] = self._loss
        if self._first and self._last and self._last[0] > self._first[0]:
            figures["steps_per_second"] = speed = per_second(self._first, self._last)
            figures["images_per_second"] = round(speed * self._train.batch_size, 1)
        return figures

    def run(self) -> str:
        """Train to the last step, or until the mean loss of a round reaches the threshold; returns
        why training ended."""
        restored = self._manager.restore()
        if restored:
            print(f"continuing at global step {self.step} ({restored.name})", flush=True)
        step, end = self.step, self._train.num_steps
        if step >= end:
            return NOTHING
        self._manager.try_out()
        self._begun = True
        if self._progress:
            self._progress.write("training", images_per_step=self._train.batch_size, steps=end)
            placement.tell(self._progress, self._network.variables)
            self._board.network(self._network)
        threshold, saved_at = self._train.loss_threshold, time.monotonic()
        while step < end:
            before, losses = step, self._round(min(self._round_steps, end - step))
            step = self.step
            self._look(before, step, losses)
            reached = threshold is not None and self._loss <= threshold
            due = time.monotonic() - saved_at >= (self._options.graph.save_secs or float("inf"))
            if due or reached or step >= end:
                self._manager.save(step)
                saved_at = time.monotonic()
            if reached:
                return THRESHOLD
        return STEPS

    def save_now(self) -> None:
        """Save a checkpoint that is never removed; called from another thread."""
        if self._begun:
            print(
                f"saved on request: {self._manager.save(self.step, by_hand=True).name}", flush=True
            )

    def stop(self) -> NoReturn:
        """Save, and end the process; called from another thread on SIGTERM."""
        message = "stopped by SIGTERM"
        if self._begun:
            mailbox.leave_last_words("", mailbox.SAVING)
            with contextlib.suppress(tf.errors.OpError, Diverged):
                message += f"; saved {self._manager.save(self.step).name}"
        print(message, flush=True)
        os._exit(EXIT_TERMINATED)

    def _round(self, count: int) -> np.ndarray:
        """Make `count` steps; returns the values of SHOWN for each step, [count, 3]."""
        try:
            sent = [
                self._coordinator.schedule(self._function, args=(self._batches,))
                for _ in range(count)
            ]
            while not self._coordinator.done():
                time.sleep(LOOK_S)
                self._tick()
            return np.array(self._coordinator.fetch(sent))
        except tf.errors.InvalidArgumentError as problem:
            if NOT_FINITE not in problem.message:
                raise
            raise Diverged(
                f"the loss is not finite after step {self.step}; {self._manager.what_is_left()};"
                " try a lower learning rate (train_config.learning_rate)"
            ) from problem

    def _tick(self) -> None:
        """Write a `step` event about once a second, and at the first step."""
        now = time.monotonic()
        if self._event and now - self._event[1] < EVENT_S:
            return
        step = self.step
        if self._event is None and not step:
            return
        speed = per_second(self._event, (step, now)) if self._event else 0.0
        self._event = (step, now)
        if self._progress:
            loss = {} if self._loss is None else {"loss": self._loss}
            self._progress.write("step", step=step, steps_per_s=speed, **loss)

    def _look(self, before: int, step: int, losses: np.ndarray) -> None:
        """Keep the loss of a round; print it and write summaries as often as the options say."""
        last, self._last = self._last, (step, time.monotonic())
        self._first = self._first or self._last
        means = dict(zip(SHOWN, map(float, losses.mean(0)), strict=True))
        self._loss = round(means["loss"], 6)
        speed = per_second(last, self._last) if last else 0.0
        graph, ended = self._options.graph, step >= self._train.num_steps
        if ended or passed(graph.log_steps, before, step):
            figures = "  ".join(f"{name} {value:.4f}" for name, value in means.items())
            shown = f"  {speed:.1f} steps/s" if last else ""
            print(f"step {step}  {figures}{shown}", flush=True)
        if graph.summary_steps and (ended or passed(graph.summary_steps, before, step)):
            rate = float(self._optimizer.learning_rate)
            figures = {**means, "steps_per_second": speed, "learning_rate": rate}
            self._board.scalars(step, figures)


def passed(every: int, before: int, step: int) -> bool:
    """Returns whether a multiple of `every` is between the two steps, or equals the second."""
    return step // every > before // every
