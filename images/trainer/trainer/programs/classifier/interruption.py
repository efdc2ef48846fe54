"""Saves the training on SIGTERM in the middle of an epoch, and resumes it there.

BackupAndRestore saves and resumes only at the ends of epochs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from pathlib import Path

import tensorflow as tf

from trainer.agent.errors import TrainerError
from trainer.agent.injected import mailbox
from trainer.agent.task import Task
from trainer.contract.endings import EXIT_TERMINATED
from trainer.programs.classifier import mode
from trainer.programs.classifier.clones import Cloned
from trainer.programs.classifier.options import Options
from trainer.programs.classifier.schedule import Schedule
from trainer.programs.training import packs
from trainer.programs.training.checkpoint_files import (
    DAMAGED,
    Snapshot,
    all_finite,
    name_of,
    named,
    remove_checkpoint,
)
from trainer.programs.training.optimizers import updates
from trainer.programs.training.program import headline

keras = tf.keras

STEP_S = 0.5
"""Maximum seconds to wait for the end of a synchronous step: a snapshot is consistent only between
two steps."""
FOLLOW_S = 0.4
"""Seconds for which a task that is not the leader continues: otherwise the leader's step could not
end."""
EPOCH, BEGAN = "epoch", "epoch_began_at"


class Resumable(Cloned):
    """A model whose `fit` can begin in the middle of an epoch."""

    resume_at: tuple[int, int] | None = None

    def _maybe_load_initial_counters_from_ckpt(
        self, steps_per_epoch: int, initial_epoch: int
    ) -> tuple[int, int]:
        """Return the first epoch and step, from 0; `fit` calls this after on_train_begin."""
        counters = super()._maybe_load_initial_counters_from_ckpt(steps_per_epoch, initial_epoch)
        return self.resume_at or counters


class Coordinated(Resumable):
    """A model whose steps a chief counts: its loss does not update Keras's metrics on the ps, and
    its variables are read in packs."""

    def pulled(self) -> contextlib.AbstractContextManager[list[tf.Variable | tf.Tensor]]:
        return packs.pulled(self)

    def compute_loss(
        self,
        x: tf.Tensor | None = None,
        y: tf.Tensor | None = None,
        y_pred: tf.Tensor | None = None,
        sample_weight: tf.Tensor | None = None,
    ) -> tf.Tensor:
        mean = tf.reduce_mean(keras.losses.categorical_crossentropy(y, y_pred))
        return tf.add_n([mean, *self.losses])


class Interruption(keras.callbacks.Callback):
    """Keeps a snapshot, `interrupted/state`, until the end of its epoch has been saved.

    It is the last callback. It resumes from the snapshot if the snapshot is newer than the backup
    that BackupAndRestore has found. Every task does this, and all read the same file.
    """

    def __init__(self, task: Task, options: Options, schedule: Schedule) -> None:
        super().__init__()
        self._supports_tf_logs = True
        self._task, self._schedule = task, schedule
        self._path = str(options.output / "interrupted" / "state")
        self._by_steps = schedule.strategy != mode.PARAMETER_SERVER or options.update == mode.SYNC
        self._epoch, self._began = schedule.first_epoch, 0
        self._epochs = options.epochs
        self._snapshot: Snapshot | None = None
        self._wanted = threading.Event()
        self._settled = threading.Event()
        self._lock = threading.Lock()
        self._said = ""

    def terminated(self) -> None:
        """Save, and end the process; called from another thread on SIGTERM."""
        self._wanted.set()
        if not self._task.is_leader:
            time.sleep(FOLLOW_S)
        elif self._snapshot:
            mailbox.leave_last_words("", mailbox.SAVING)
            if not (self._by_steps and self._settled.wait(STEP_S)):
                self._save()
        print(f"stopped by SIGTERM{self._said}", flush=True)
        os._exit(EXIT_TERMINATED)

    def on_train_begin(self, logs: dict | None = None) -> None:
        network = self.model
        device = tf.DeviceSpec.from_string(
            network.distribute_strategy.experimental_local_results(network.weights[0])[0].device
        )
        if self._schedule.strategy == mode.PARAMETER_SERVER:
            device = tf.DeviceSpec(job="chief", replica=0, task=0)
        snapshot = Snapshot(
            named(network, network.optimizer),
            network.distribute_strategy,
            device.replace(device_type="CPU", device_index=0).to_string(),
            (EPOCH, BEGAN),
        )
        self._go_on(snapshot)
        if self._task.is_leader:
            snapshot.try_out(f"{self._path}.try-out")
            self._snapshot = snapshot

    def on_epoch_begin(self, epoch: int, logs: dict | None = None) -> None:
        resumed = self.model.resume_at and self.model.resume_at[0] == epoch
        if not resumed:
            with self._lock:
                self._epoch, self._began = epoch, self._step()

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        if self._by_steps:
            self.between_steps()

    def between_steps(self) -> None:
        """Called between two steps: saves if requested, except at the end of an epoch."""
        if self._wanted.is_set() and self._made() < self._schedule.steps_per_epoch:
            self._save()

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        with self._lock:
            if self._task.is_leader:
                remove_checkpoint(Path(self._path))
            if self._wanted.is_set():
                self._said = f"; epoch {epoch + 1} is saved"
                self._settled.set()

    def on_train_end(self, logs: dict | None = None) -> None:
        if self._task.is_leader:
            shutil.rmtree(Path(self._path).parent, ignore_errors=True)

    def _go_on(self, snapshot: Snapshot) -> None:
        if not Path(f"{self._path}.index").exists():
            return
        try:
            reader = tf.train.load_checkpoint(self._path)
            step = int(reader.get_tensor(f"optimizer/{name_of(self.model.optimizer.iterations)}"))
            if step <= self._step():
                return
            snapshot.read(self._path)
            self._epoch, self._began = (int(reader.get_tensor(key)) for key in (EPOCH, BEGAN))
        except (TrainerError, *DAMAGED) as problem:
            print(f"error: {headline(problem)}; continuing from the last saved epoch", flush=True)
            return
        steps_made = self._made()
        if steps_made >= self._schedule.steps_per_epoch and self._epoch + 1 < self._epochs:
            self._epoch, self._began, steps_made = self._epoch + 1, step, 0
        steps_made = min(
            steps_made, self._schedule.steps_per_epoch - 1
        )  # The end of the last epoch saves the final state.
        self.model.resume_at = (self._epoch, steps_made)
        if self._task.is_leader:
            print(
                f"continuing at global step {step} (epoch {self._epoch + 1}, step {steps_made} of"
                f" {self._schedule.steps_per_epoch})",
                flush=True,
            )

    def _step(self) -> int:
        return updates(self.model.optimizer)

    def _made(self) -> int:
        """Returns the number of steps made in this epoch."""
        return self._step() - self._began

    def _save(self) -> None:
        with self._lock:
            if self._settled.is_set() or not self._snapshot:
                return
            try:
                self._snapshot.write(self._path, **{EPOCH: self._epoch, BEGAN: self._began})
                if all_finite(self._path):
                    self._said = f"; saved step {self._step()}, in epoch {self._epoch + 1}"
                else:
                    remove_checkpoint(Path(self._path))
            except (TrainerError, tf.errors.OpError) as problem:
                self._said = f"; could not save: {headline(problem)}"
            self._settled.set()
