"""The learning rate and the optimizer of a configuration, for graph mode and for `fit`.

In graph mode it can also keep moving averages of the variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import tensorflow as tf

from trainer.programs.detection.config.pipeline import (
    Adam,
    Averaging,
    CosineRate,
    ExponentialRate,
    LearningRate,
    ManualStepRate,
    Momentum,
    RmsProp,
    TrainConfig,
)
from trainer.programs.training import optimizers

keras = tf.keras
v1 = tf.compat.v1


def rate_at(step: tf.Tensor, schedule: LearningRate, num_steps: int) -> tf.Tensor:
    """Returns the rate, a float32 scalar, at global step `step` (any number), in TensorFlow ops."""
    step = tf.cast(step, tf.float32)
    rate = after_warmup(step, schedule, num_steps)
    if not schedule.warmup_steps:
        return rate
    share = step / float(schedule.warmup_steps)
    start = schedule.warmup_learning_rate
    rising = start + (schedule.learning_rate - start) * share
    return tf.where(step < float(schedule.warmup_steps), rising, rate)


def after_warmup(step: tf.Tensor, schedule: LearningRate, num_steps: int) -> tf.Tensor:
    """Returns the rate at `step`, a float32 scalar, without the warm-up."""
    first = schedule.learning_rate
    match schedule:
        case ExponentialRate():
            times = step / float(schedule.decay_steps)
            times = tf.floor(times) if schedule.staircase else times
            return first * schedule.decay_factor**times
        case CosineRate():
            begin = schedule.warmup_steps
            last = max(schedule.total_steps or num_steps, begin + 1)
            share = tf.clip_by_value((step - float(begin)) / float(last - begin), 0.0, 1.0)
            return first * 0.5 * (1.0 + tf.cos(math.pi * share))
        case ManualStepRate():
            rate = tf.constant(first)
            for change in schedule.schedule:
                rate = tf.where(step < float(change.step), rate, change.learning_rate)
            return rate
    return tf.constant(first)


class ScheduledRate(keras.optimizers.schedules.LearningRateSchedule):
    """rate_at as a learning rate schedule of tf_keras."""

    def __init__(self, schedule: LearningRate, num_steps: int) -> None:
        self.schedule, self.num_steps = schedule, num_steps

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        return rate_at(step, self.schedule, self.num_steps)

    def get_config(self) -> dict:
        return {"schedule": self.schedule.model_dump(), "num_steps": self.num_steps}


def keras_optimizer(train: TrainConfig, num_steps: int) -> keras.optimizers.Optimizer:
    """Returns the configured optimizer for a tf_keras model, with its learning rate schedule."""
    rate = ScheduledRate(train.learning_rate, num_steps)
    clip = {"global_clipnorm": train.gradient_clipping_by_norm or None}
    match train.optimizer:
        case Momentum(momentum=momentum):
            return optimizers.SGD(rate, momentum, **clip)
        case RmsProp(momentum=momentum, decay=decay, epsilon=epsilon):
            return optimizers.RMSprop(rate, decay, momentum, epsilon, **clip)
        case Adam(beta_1=beta_1, beta_2=beta_2, epsilon=epsilon):
            return optimizers.Adam(rate, beta_1, beta_2, epsilon, **clip)


def graph_optimizer(train: TrainConfig, rate: tf.Tensor) -> v1.train.Optimizer:
    """Returns the configured optimizer for graph mode; GraphJob.clip_norm clips the gradients."""
    match train.optimizer:
        case Momentum(momentum=momentum):
            return v1.train.MomentumOptimizer(rate, momentum)
        case RmsProp(momentum=momentum, decay=decay, epsilon=epsilon):
            return v1.train.RMSPropOptimizer(rate, decay, momentum, epsilon)
        case Adam(beta_1=beta_1, beta_2=beta_2, epsilon=epsilon):
            return v1.train.AdamOptimizer(rate, beta_1, beta_2, epsilon)


def kept_by(optimizer: v1.train.Optimizer, options: Averaging) -> v1.train.Optimizer:
    """Returns the optimizer; if the options ask for it, each update also updates moving averages.

    The averages are separate variables, `<name>/ExponentialMovingAverage`, on the same ps.
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
