"""Moving averages of the variables, kept beside them in graph mode."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf

from trainer.programs.detection.config.train_fields import Averaging

v1 = tf.compat.v1


def kept_by(optimizer: v1.train.Optimizer, options: Averaging) -> v1.train.Optimizer:
    """The optimizer itself; if the options ask for it, each update moves the averages, too.

    They are variables of their own, `<name>/ExponentialMovingAverage`, on the same ps.
    """
    if not options.use_moving_average:
        return optimizer
    apply = optimizer.apply_gradients

    def averaged(grads_and_vars: Iterable, *args: object, **keys: object) -> tf.Operation:
        pairs = list(grads_and_vars)
        applied = apply(pairs, *args, **keys)
        averages = v1.train.ExponentialMovingAverage(options.moving_average_decay)
        with tf.control_dependencies([applied]):
            return averages.apply([variable for _, variable in pairs])

    optimizer.apply_gradients = averaged
    return optimizer
