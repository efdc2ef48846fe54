"""Writes SavedModels so that a reader never sees a partial one."""

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
    """Write a SavedModel next to `target`, then rename it to `target`.

    Args:
        weights: all variables that `serve` reads.
        serve: the function of the signature `serving_default`; tf.saved_model.load returns it as
            `serve`.
        signature: the signature of `serve`'s only argument.
        also: writes further files into the directory that it gets.
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
