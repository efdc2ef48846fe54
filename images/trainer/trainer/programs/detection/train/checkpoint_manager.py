"""The coordinator's checkpoints: written, looked at, and only then in the place of older ones."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import tensorflow as tf

from trainer.programs.detection.model import weights
from trainer.programs.detection.model.weights import Checkpoint
from trainer.programs.training.checkpoints.directory import checkpoint_directory
from trainer.programs.training.checkpoints.files import remove, what_is_left
from trainer.programs.training.checkpoints.snapshot import DAMAGED, Snapshot, all_finite, named
from trainer.programs.training.errors import CheckpointError, Diverged

CHIEF = "/job:chief/replica:0/task:0/device:CPU:0"


class CheckpointManager:
    """Network and optimizer in `checkpoints/ckpt-<step>`, by the names of the variables."""

    def __init__(
        self,
        output: Path,
        keep: int,
        network: tf.keras.Model,
        optimizer: tf.keras.optimizers.Optimizer,
    ) -> None:
        self.last: Checkpoint | None = None
        self._output = output
        self._keep = keep
        self._lock = threading.Lock()
        self._snapshot = Snapshot(named(network, optimizer), network.distribute_strategy, CHIEF)

    def restore(self) -> Checkpoint | None:
        """The newest that is sound; None if there is none at all.

        Raises:
            CheckpointError: all are damaged, or they are another model's.
        """
        damaged = []
        for found in reversed(weights.find(self._output)):
            try:
                self._snapshot.read(found.path)
            except DAMAGED as problem:
                damaged.append(f"{found.name} is damaged ({str(problem).splitlines()[0][:200]})")
                print(f"error: {damaged[-1]}", file=sys.stderr, flush=True)
            else:
                self.last = found
                return found
        if damaged:
            raise CheckpointError(
                f"{'; '.join(damaged)}, and there is no other in"
                f" {checkpoint_directory(self._output)}; put a copy back, or remove it to train"
                " from the beginning"
            )
        return None

    def try_out(self) -> None:
        """Write once for nothing: the first time takes seconds, and may find that it cannot."""
        self._snapshot.try_out(str(checkpoint_directory(self._output) / ".try-out"))

    def save(self, step: int, by_hand: bool = False) -> Checkpoint:
        """Write one; Diverged, and nothing is left of it, if a variable is not finite."""
        with self._lock:
            name = f"{'manual.' if by_hand else ''}ckpt-{step}"
            path = str(checkpoint_directory(self._output) / name)
            self._snapshot.write(path)
            saved = next(c for c in weights.find(self._output) if c.name == name)
            if not all_finite(path):
                remove(Path(saved.path))
                raise Diverged(f"a variable is not finite any more; {self.what_is_left()}")
            self.last = saved
            automatic = [c for c in weights.find(self._output) if c.name.startswith("ckpt-")]
            for old in automatic[: -self._keep]:
                remove(Path(old.path))
            return saved

    def what_is_left(self) -> str:
        return what_is_left(self.last and self.last.name)
