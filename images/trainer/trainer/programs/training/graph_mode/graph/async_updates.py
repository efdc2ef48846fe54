"""Asynchronous updates: each gradient is applied as soon as it is there."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from trainer.programs.training.graph_mode.counters import SharedCounters, counted
from trainer.programs.training.graph_mode.graph.model_deploy import GradientsAndVariables

tf1 = tf.compat.v1


def apply_at_once(
    counters: SharedCounters,
    replica: int,
    optimizer: tf1.train.Optimizer,
    gradients: GradientsAndVariables,
    updates: Sequence[tf.Operation],
) -> tf.Tensor:
    """The op of one step of replica number `replica`: [global step, end_at], int64.

    It applies the gradients, runs `updates`, and counts the step. Also for a replica that is alone.
    """
    with tf1.device(counters.device):
        before = counters.global_step.read_value()
    applied = optimizer.apply_gradients(gradients)
    with tf1.device(counters.device), tf.control_dependencies([applied, before, *updates]):
        after = counters.global_step.assign_add(1, read_value=True)
    return counted(counters, replica, before, after)
