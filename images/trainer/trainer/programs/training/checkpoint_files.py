"""Files of TensorFlow's checkpoint format, `<prefix>.index` and `<prefix>.data-*`, and snapshots.

A checkpoint is complete when its index exists. A single op writes a snapshot, because
tf.train.Checkpoint walks its objects for seconds in every save, which is too slow on SIGTERM.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.programs.training.program import CheckpointError, headline

UNWRITABLE = (
    OSError,
    ValueError,
    tf.errors.InternalError,
    tf.errors.PermissionDeniedError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnknownError,
)
"""Errors of writing a checkpoint if the disk is full, or the directory is missing or read-only."""


def unwritable(prefix: str | Path, problem: Exception) -> CheckpointError:
    """Returns the error to raise if writing the checkpoint `prefix` raised one of UNWRITABLE."""
    return CheckpointError(
        f"cannot write {prefix}: {headline(problem)}; the output directory needs space, and must be"
        " this user's"
    )


def last_good_clause(last: str | None) -> str:
    """Returns a clause for the message of a diverged training; `last`: the last good checkpoint."""
    if last is None:
        return "nothing was saved before"
    return f"{last}, the last good checkpoint, is kept"


def link_checkpoint(prefix: Path, name: str) -> None:
    """Give the checkpoint a second name, by hard links, or by copies if links are not possible."""
    for file in (*prefix.parent.glob(f"{prefix.name}.data-*"),
                 prefix.with_name(f"{prefix.name}.index")):  # fmt: skip
        new = file.with_name(name + file.name.removeprefix(prefix.name))
        new.unlink(missing_ok=True)
        try:
            new.hardlink_to(file)
        except OSError:
            shutil.copyfile(file, new)


def remove_checkpoint(prefix: Path) -> None:
    """Remove a checkpoint's files, the index first: other files without an index are ignored."""
    prefix.with_name(f"{prefix.name}.index").unlink(missing_ok=True)
    for file in prefix.parent.glob(f"{prefix.name}.data-*"):
        file.unlink(missing_ok=True)


DAMAGED = (tf.errors.OpError, IndexError)
"""Errors of reading a file that is truncated, or is being replaced by a newer one."""


def writing(prefix: tf.Tensor, values: Mapping[str, tf.Tensor]) -> tf.Operation:
    """Returns an op that writes the checkpoint `prefix`, with the values by their names."""
    return tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=list(values),
        shape_and_slices=[""] * len(values),
        tensors=list(values.values()),
    )


PART = "/part_"


def _parts_of(name: str, names: Iterable[str]) -> str:
    """How many parts the variable has that `name` is or is a part of: `one piece`, `2 parts`, or
    "" if `names` has none of it."""
    whole = name.partition(PART)[0]
    count = sum(one.startswith(whole + PART) for one in names)
    return f"{count} parts" if count else "one piece" if whole in names else ""


class Snapshot:
    """Writes and reads `variables`, which may be on any task, in this task.

    Args:
        variables: the variables by their names in the file.
        strategy: the strategy in whose scope they were created.
        device: a CPU of this task.
        numbers: names of further whole numbers, given to each `write`.
    """

    def __init__(
        self,
        variables: Mapping[str, tf.Variable],
        strategy: tf.distribute.Strategy,
        device: str,
        numbers: Collection[str] = (),
    ) -> None:
        self._variables = dict(variables)
        self._strategy = strategy
        self._device = device
        self._numbers = tuple(numbers)
        signature = [tf.TensorSpec((), tf.string), tf.TensorSpec((len(self._numbers),), tf.int64)]
        self._write = tf.function(self._written, signature, autograph=False).get_concrete_function()

    def write(self, path: str, **numbers: int) -> None:
        """Write the checkpoint with prefix `path`; raise CheckpointError on failure."""
        values = tf.constant([numbers[name] for name in self._numbers], tf.int64)
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._write(tf.constant(path), values).numpy()
        except UNWRITABLE as problem:
            raise unwritable(path, problem) from problem

    def try_out(self, path: str) -> None:
        """Write a trial checkpoint, since the first write takes seconds and can fail."""
        self.write(path, **dict.fromkeys(self._numbers, 0))
        remove_checkpoint(Path(path))

    def read(self, path: str) -> None:
        """Give every variable its value.

        Raises:
            CheckpointError: the file is of another model; no variable has changed.
            one of DAMAGED: the file is damaged; no variable has changed.
        """
        reader = tf.train.load_checkpoint(path)
        shapes = reader.get_variable_to_shape_map()
        for name, variable in self._variables.items():
            if shapes.get(name) != variable.shape.as_list():
                there, here = _parts_of(name, shapes), _parts_of(name, self._variables)
                if there and there != here:
                    raise CheckpointError(
                        f"{path} was saved with another number of ps: {name.partition(PART)[0]} is"
                        f" in {there} there, and in {here} here"
                    )
                raise CheckpointError(
                    f"{path} belongs to another model: the shape of {name} is"
                    f" {shapes.get(name, 'missing')}, and should be {variable.shape.as_list()};"
                    " use the configuration with which it was made, or another output directory"
                )
        values = {name: reader.get_tensor(name) for name in self._variables}
        for name, variable in self._variables.items():
            variable.assign(values[name])

    def _own(self, variable: tf.Variable) -> tf.Variable:
        """Returns this task's copy of a mirrored variable, so that lost tasks are not needed."""
        return self._strategy.experimental_local_results(variable)[0]

    def _written(self, prefix: tf.Tensor, numbers: tf.Tensor) -> tf.Tensor:
        """Returns `prefix` after all variables were read from their tasks and saved.

        Without a result, no caller would wait for the op.
        """
        with tf.device(self._device):
            own = {name: tf.identity(self._own(v)) for name, v in self._variables.items()}
            given = {name: numbers[index] for index, name in enumerate(self._numbers)}
            save = writing(prefix, {**own, **given})
            with tf.control_dependencies([save]):
                return tf.identity(prefix)


def trace_once(checkpoint: tf.train.Checkpoint) -> None:
    """Let `checkpoint` build its ops in its first save, and only run them in the later ones.

    tf.train.Checkpoint builds them anew in every save: 0.2 s of CPU time for a model of 12 layers.
    The objects that belong to it must not change after the first save; their values may.
    """
    saver = checkpoint._saver
    build = saver.save
    signature = [tf.TensorSpec((), tf.string)]
    write = tf.function(lambda prefix: build(prefix), input_signature=signature, autograph=False)

    def save(file_prefix: str, *others: Any, **named: Any) -> tf.Tensor:
        if not tf.executing_eagerly():
            return build(file_prefix, *others, **named)
        Path(file_prefix).parent.mkdir(parents=True, exist_ok=True)
        return write(tf.constant(file_prefix))

    saver.save = save


def name_of(variable: tf.Variable) -> str:
    """Returns a variable's name without the number of its output."""
    return variable.name.partition(":")[0]


def named(
    network: tf.keras.Model, optimizer: tf.keras.optimizers.Optimizer
) -> dict[str, tf.Variable]:
    """Returns the variables that training changes, by name; the optimizer's: `optimizer/<name>`.

    A split variable is saved in parts, one per parameter server, so a cluster with another number
    of parameter servers cannot read it.
    """
    return {
        **{name_of(part): part for part in parts(network.weights)},
        **{f"optimizer/{name_of(part)}": part for part in parts(optimizer.variables)},
    }


def parts(variables: Iterable[tf.Variable]) -> Iterator[tf.Variable]:
    """Yield the variables; a variable that is split over several ps is yielded as its parts."""
    for variable in variables:
        yield from getattr(variable, "variables", (variable,))


def all_finite(path: str) -> bool:
    """Returns whether every float tensor in the checkpoint is finite."""
    reader = tf.train.load_checkpoint(path)
    kinds = reader.get_variable_to_dtype_map()
    return all(
        bool(np.isfinite(reader.get_tensor(key)).all()) for key, kind in kinds.items()
        if kind.is_floating
    )  # fmt: skip
