"""The coordinator's checkpoints: written, looked at, and only then in the place of older ones."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import tensorflow as tf

from trainer.detection import weights
from trainer.detection.weights import Checkpoint
from trainer.graph.errors import CheckpointError, Diverged


class Kept:
    """Network and optimizer in `checkpoints/ckpt-<step>`; the ps write their own variables."""

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
        self._objects = tf.train.Checkpoint(network=network, optimizer=optimizer)
        self._lock = threading.Lock()

    def restore(self) -> Checkpoint | None:
        """The newest that is sound; None where there is none at all.

        Raises:
            CheckpointError: all are damaged, or they are another model's.
        """
        damaged = []
        for found in reversed(weights.find(self._output)):
            try:
                self._objects.read(found.path).assert_existing_objects_matched()
            except (AssertionError, ValueError) as problem:
                raise CheckpointError(
                    f"{found.path} belongs to another model; take the configuration that it was"
                    " made with, or another output directory"
                ) from problem
            except weights.GONE as problem:
                damaged.append(f"{found.name} is damaged ({str(problem).splitlines()[0][:200]})")
                print(f"error: {damaged[-1]}", file=sys.stderr, flush=True)
            else:
                self.last = found
                return found
        if damaged:
            raise CheckpointError(
                f"{'; '.join(damaged)}, and there is no other in"
                f" {weights.directory(self._output)}; put a copy back, or remove it to train from"
                " the beginning"
            )
        return None

    def save(self, step: int, by_hand: bool = False) -> Checkpoint:
        """Write one; Diverged, and nothing is left of it, where a variable is no number."""
        with self._lock:
            name = f"{'manual.' if by_hand else ''}ckpt-{step}"
            path = str(weights.directory(self._output) / name)
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._objects.write(path)
            saved = next(c for c in weights.find(self._output) if c.name == name)
            if not all_finite(path):
                remove(saved)
                raise Diverged(f"a variable is no number any more; {self.what_is_left()}")
            self.last = saved
            automatic = [c for c in weights.find(self._output) if c.name.startswith("ckpt-")]
            for old in automatic[: -self._keep]:
                remove(old)
            return saved

    def what_is_left(self) -> str:
        if self.last is None:
            return "nothing was saved before"
        return f"{self.last.name}, the last good checkpoint, is kept"


def all_finite(path: str) -> bool:
    reader = tf.train.load_checkpoint(path)
    kinds = reader.get_variable_to_dtype_map()
    return all(
        bool(np.isfinite(reader.get_tensor(key)).all()) for key, kind in kinds.items()
        if kind.is_floating
    )  # fmt: skip


def remove(checkpoint: Checkpoint) -> None:
    """The index first: without it the rest counts for nothing."""
    path = Path(checkpoint.path)
    path.with_name(f"{path.name}.index").unlink(missing_ok=True)
    for file in path.parent.glob(f"{path.name}.data-*"):
        file.unlink(missing_ok=True)
