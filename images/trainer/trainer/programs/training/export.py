"""SavedModels that replace each other whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import tensorflow as tf


def saved_model(
    target: Path,
    weights: Sequence[tf.Variable],
    serve: Callable[[tf.Tensor], Mapping[str, tf.Tensor]],
    signature: tf.TensorSpec,
    also: Callable[[Path], None] = lambda directory: None,
) -> None:
    """Write a SavedModel beside `target`, then put it in its place.

    Args:
        weights: every variable that `serve` reads.
        serve: becomes the signature `serving_default`, and `serve` for tf.saved_model.load.
        signature: of the one argument of `serve`.
        also: puts further files into the directory that it is given.
    """
    new, old = target.with_name(f".{target.name}.new"), target.with_name(f".{target.name}.old")
    for left_over in (new, old):
        shutil.rmtree(left_over, ignore_errors=True)
    archive = tf.Module()
    archive.weights = weights
    archive.serve = tf.function(serve, input_signature=[signature])
    tf.saved_model.save(archive, str(new), signatures=archive.serve)
    also(new)
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)
