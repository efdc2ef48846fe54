"""tf_keras models inside a graph: what their layers leave to be run."""

from __future__ import annotations

import tensorflow as tf


def updates_of(model: tf.keras.Model, batch: tf.Tensor) -> list[tf.Operation]:
    """What the call of `model` on `batch` wants updated with every step: BatchNorm's averages.

    For ModelLoss.updates. Outside of a graph (eager, tf.function) there is nothing to be done.
    """
    return list(model.get_updates_for([batch])) + list(model.get_updates_for(None))
