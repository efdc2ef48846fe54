"""Keras callbacks of the training: progress, TensorBoard, backup, checkpoints, learning rate."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections.abc import Callable

import tensorflow as tf

from trainer.agent.progress_file import Progress
from trainer.programs.classifier import mode
from trainer.programs.classifier.checkpoints import prune
from trainer.programs.classifier.options import Options
from trainer.programs.classifier.schedule import Schedule
from trainer.programs.training import placement
from trainer.programs.training.board import Curves
from trainer.programs.training.checkpoint_files import trace_once
from trainer.programs.training.optimizers import updates
from trainer.programs.training.program import STEPS, THRESHOLD, Diverged, checkpoint_directory

keras = tf.keras


def callbacks(
    options: Options, schedule: Schedule, progress: Progress | None, *, leads: bool
) -> tuple[EpochReport, list]:
    """Returns all callbacks. EpochReport comes first, so that a diverged epoch is not saved.

    Only the leader prints and reports. All tasks save, since reading a variable can be a collective
    operation of all tasks. In the other tasks tf_keras writes to a temporary folder, and removes
    it.
    """
    report = EpochReport(options, schedule, progress if leads else None, speaks=leads)
    return report, [
        report,
        keras.callbacks.LearningRateScheduler(lambda epoch: options.learning_rate(epoch)),
        *([Curves(options.output)] if leads else []),
        keras.callbacks.ModelCheckpoint(
            str(checkpoint_directory(options.output) / "ckpt-{epoch}"), save_weights_only=True
        ),
        *([KeepNewest(options)] if leads else []),
        Backup(str(options.output / "backup")),
    ]


class Backup(keras.callbacks.BackupAndRestore):
    """BackupAndRestore; its checkpoint is traced once."""

    def on_train_begin(self, logs: dict | None = None) -> None:
        super().on_train_begin(logs)
        trace_once(self._training_state.write_checkpoint_manager.checkpoint)


class KeepNewest(keras.callbacks.Callback):
    """After each epoch, deletes old checkpoints until --keep are left."""

    def __init__(self, options: Options) -> None:
        super().__init__()
        self._options = options

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        prune(self._options.output, self._options.graph.keep)


class EpochReport(keras.callbacks.Callback):
    """Reports each epoch (one line, one event), a step event per second, and the steps per second.

    steps_per_s leaves out the first epoch, which traces functions and fills caches, and the time to
    save checkpoints. If there is only one epoch, it counts from the first step on.
    """

    def __init__(
        self,
        options: Options,
        schedule: Schedule,
        progress: Progress | None,
        *,
        speaks: bool = True,
    ) -> None:
        super().__init__()
        self._options = options
        self._schedule = schedule
        self._progress = progress
        self._speaks = speaks
        self._epochs_run = 0
        self._updates = 0
        self._measured = (0, 0.0)
        self._stale: list[tuple[int, float, float]] = []
        self._reached = STEPS

    def figures(self) -> dict[str, object]:
        """Returns the final metrics: speed, updates, why it ended, staleness if it was measured."""
        figures: dict[str, object] = {"updates": self._updates, "reached": self._reached}
        steps, seconds = self._measured
        if steps and seconds:
            figures["steps_per_second"] = round(steps / seconds, 2)
            figures["images_per_second"] = round(
                steps * self._schedule.images_per_step / seconds, 1
            )
        if self._stale:
            all_steps = sum(steps for steps, _, _ in self._stale)
            total = sum(steps * mean for steps, mean, _ in self._stale)
            figures["staleness_mean"] = round(total / max(1, all_steps), 3)
            figures["staleness_max"] = int(max(highest for _, _, highest in self._stale))
        elif self._synchronous:
            figures |= {"staleness_mean": 0.0, "staleness_max": 0}
        return figures

    @property
    def _synchronous(self) -> bool:
        return self._schedule.strategy == mode.ALL_REDUCE or self._options.update == mode.SYNC

    def on_train_begin(self, logs: dict | None = None) -> None:
        if self._progress:
            self._progress.write(
                "training",
                strategy=self._schedule.strategy,
                images_per_step=self._schedule.images_per_step,
                steps=self._schedule.steps_per_epoch * self._schedule.epochs,
            )
        placement.tell(self._progress, self.model.variables)
        self._ticker = StepTicker(self._step, self._progress)

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        if self._ticker.ident is None:  # only now all callbacks have restored what they saved
            self._ticker.start()
        self._begin = time.monotonic()
        self._begin_step = self._step()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        now, step = time.monotonic(), self._step()
        loss, accuracy = float(logs["loss"]), float(logs["accuracy"])
        rate = float(self.model.optimizer.learning_rate.numpy())
        self._measure(step, now)
        self._updates = step
        if "staleness_mean" in logs:
            of_epoch = float(logs["staleness_mean"]), float(logs["staleness_max"])
            self._stale.append((step - self._begin_step, *of_epoch))
        if not math.isfinite(loss):
            raise Diverged(
                f"the loss is {loss} in epoch {epoch + 1} (step {step}); the last good checkpoint"
                f" is kept; try a lower rate than {rate:g} (--learning-rates)"
            )
        threshold = self._options.graph.loss_threshold
        if threshold is not None and loss <= threshold:
            self.model.stop_training = True  # all trainers have the same loss
            self._reached = THRESHOLD
        if not self._speaks:
            return
        print(
            f"epoch {epoch + 1}/{self._options.epochs}  step {step}  loss {loss:.4f}"
            f"  accuracy {accuracy:.4f}  learning rate {rate:g}  {now - self._begin:.1f} s",
            flush=True,
        )
        if self._progress:
            self._progress.write(
                "epoch", epoch=epoch + 1, step=step, loss=loss, accuracy=accuracy,
                learning_rate=rate, **self._staleness(logs),
            )  # fmt: skip

    @staticmethod
    def _staleness(logs: dict) -> dict[str, float]:
        return {"staleness": float(logs["staleness_mean"])} if "staleness_mean" in logs else {}

    def on_train_end(self, logs: dict | None = None) -> None:
        self._ticker.stop()
        # When `fit` returns, TensorFlow removes the functions of its local variables from every
        # worker, which took between 1 s and 40 s. Keeping the frame alive avoids this.
        self._keeps_fit_alive = inspect.currentframe()

    def _step(self) -> int:
        return updates(self.model.optimizer)

    def _measure(self, step: int, now: float) -> None:
        self._epochs_run += 1
        if self._epochs_run == 2:
            self._measured = (0, 0.0)
        if self._epochs_run > 1:
            steps, seconds = self._measured
            self._measured = (steps + step - self._begin_step, seconds + now - self._begin)
        elif self._ticker.first:
            first_step, at = self._ticker.first
            self._measured = (step - first_step, now - at)


class StepTicker(threading.Thread):
    """Reads the step counter in a thread, since Keras refuses batch-level callbacks here.

    It reads every 50 ms until the first step, then once a second.
    """

    def __init__(self, read: Callable[[], int], progress: Progress | None) -> None:
        super().__init__(name="steps", daemon=True)
        self._read = read
        self._progress = progress
        self._done = threading.Event()
        self.first: tuple[int, float] | None = None

    def stop(self) -> None:
        self._done.set()
        if self.ident is not None:
            self.join(2.0)

    def run(self) -> None:
        before = self._step()
        since = time.monotonic()
        while before is not None and not self._done.wait(1.0 if self.first else 0.05):
            step, now = self._step(), time.monotonic()
            if step is None:
                return
            if self.first is None and step > before:
                self.first = (step, now)
            if self.first and self._progress:
                speed = round((step - before) / (now - since), 2)
                self._progress.write("step", step=step, steps_per_s=speed)
            if self.first:
                before, since = step, now

    def _step(self) -> int | None:
        """The step; None if the ps with the counter is lost, which the training itself reports."""
        try:
            return self._read()
        except tf.errors.OpError:
            return None
