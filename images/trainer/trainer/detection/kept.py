"""The coordinator's checkpoints: written, looked at, and only then in the place of older ones."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import tensorflow as tf

from trainer.detection import weights
from trainer.detection.weights import Checkpoint
from trainer.graph.checkpoints import UNWRITABLE
from trainer.graph.errors import CheckpointError, Diverged


class Kept:
    """Network and optimizer in `checkpoints/ckpt-<step>`, by the names of the variables.

    Written by one function of one op: tf.train.Checkpoint walks its objects anew in every save,
    for seconds, and on SIGTERM there is little more than two.
    """

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
        self._variables = {
            **{weights.name_of(v): v for v in network.weights},
            **{f"optimizer/{weights.name_of(v)}": v for v in optimizer.variables},
        }
        prefix = tf.TensorSpec((), tf.string)
        self._write = tf.function(self._written, [prefix]).get_concrete_function()

    def restore(self) -> Checkpoint | None:
        """The newest that is sound; None where there is none at all.

        Raises:
            CheckpointError: all are damaged, or they are another model's.
        """
        damaged = []
        for found in reversed(weights.find(self._output)):
            try:
                self._read(found)
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

    def try_out(self) -> None:
        """Write once for nothing: the first time takes seconds, and may find that it cannot."""
        path = str(weights.directory(self._output) / ".try-out")
        self._put(path)
        remove(Checkpoint(0, path, 0))

    def save(self, step: int, by_hand: bool = False) -> Checkpoint:
        """Write one; Diverged, and nothing is left of it, where a variable is no number."""
        with self._lock:
            name = f"{'manual.' if by_hand else ''}ckpt-{step}"
            path = str(weights.directory(self._output) / name)
            self._put(path)
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

    def _put(self, path: str) -> None:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._write(tf.constant(path)).numpy()
        except UNWRITABLE as problem:
            raise CheckpointError(
                f"cannot write {path}: {str(problem).splitlines()[0][:200]}; the output directory"
                " needs room, and to be this user's"
            ) from problem

    def _written(self, prefix: tf.Tensor) -> tf.Tensor:
        """Pulls all variables to this task; without a result nobody would wait for the op."""
        with tf.device("/job:chief/replica:0/task:0/device:CPU:0"):
            save = tf.raw_ops.SaveV2(
                prefix=prefix,
                tensor_names=list(self._variables),
                shape_and_slices=[""] * len(self._variables),
                tensors=[tf.identity(variable) for variable in self._variables.values()],
            )
            with tf.control_dependencies([save]):
                return tf.identity(prefix)

    def _read(self, found: Checkpoint) -> None:
        reader = tf.train.load_checkpoint(found.path)
        shapes = reader.get_variable_to_shape_map()
        for name, variable in self._variables.items():
            if shapes.get(name) != variable.shape.as_list():
                raise CheckpointError(
                    f"{found.path} belongs to another model: its {name} is"
                    f" {shapes.get(name, 'not there')}, and should be {variable.shape.as_list()};"
                    " take the configuration that it was made with, or another output directory"
                )
        for name, variable in self._variables.items():
            variable.assign(reader.get_tensor(name))


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
