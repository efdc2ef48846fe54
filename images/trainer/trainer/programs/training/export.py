"""Writes SavedModels so that a reader never sees a partial one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tensorflow as tf

GRAPH, VARIABLES = "saved_model.pb", "variables"


class SavedModel:
    """The directory of a SavedModel, which is written again after further training.

    TensorFlow takes seconds to trace and describe a large model. This is done only the first time:
    after that, only the values of the variables are written.

    Args:
        weights: all variables that `serve` reads.
        serve: the function of the signature `serving_default`; tf.saved_model.load returns it as
            `serve`.
        signature: the signature of `serve`'s only argument.
        also: writes further files into the directory that it gets.
    """

    def __init__(
        self,
        directory: Path,
        weights: Sequence[tf.Variable],
        serve: Callable[[tf.Tensor], Mapping[str, tf.Tensor]],
        signature: tf.TensorSpec,
        also: Callable[[Path], None] = lambda directory: None,
    ) -> None:
        self._directory, self._also = directory, also
        self._archive = tf.Module()
        self._archive.weights = weights
        self._archive.serve = tf.function(serve, [signature], autograph=False)
        self._values = tf.train.Checkpoint(root=self._archive)
        self._has_written = False

    def write(self) -> None:
        """Write the SavedModel next to its directory, and replace the directory by it."""
        directory = self._directory
        new, old = (directory.with_name(f".{directory.name}.{end}") for end in ("new", "old"))
        for left_over in (new, old):
            shutil.rmtree(left_over, ignore_errors=True)
        graph = directory / GRAPH
        if self._has_written and graph.exists():
            # Without fingerprint.pb, which has a hash of the values and may be absent.
            new.mkdir()
            shutil.copyfile(graph, new / GRAPH)
            self._values.write(str(new / VARIABLES / VARIABLES))
        else:
            tf.saved_model.save(self._archive, str(new), signatures=self._archive.serve)
        self._also(new)
        if directory.exists():
            directory.rename(old)
        new.rename(directory)
        shutil.rmtree(old, ignore_errors=True)
        self._has_written = True
