"""How stale gradients are when they arrive: updates by others between a step's pull and push."""

from __future__ import annotations

import tensorflow as tf

from trainer.programs.classifier.train.interruption import Resumable

keras = tf.keras

LIMIT = 256
"""More updates than this between pull and push count as this many."""


class Staleness(keras.metrics.Metric):
    """Mean and maximum over the steps since the last reset.

    A histogram, because workers add to it at the same time: adding is atomic, a maximum is not.
    """

    def __init__(self) -> None:
        super().__init__(name="staleness")
        self.counts = self.add_weight("counts", shape=(LIMIT,), initializer="zeros")
        self.pushes = self.add_weight("pushes", shape=(), initializer="zeros", dtype=tf.int64)

    def update_state(self, pulled: tf.Tensor) -> None:
        """Count a step at its push; `pulled` (int64 scalar) is what `pushes` was at its pull."""
        since = self.pushes.read_value() - pulled
        self.pushes.assign_add(tf.constant(1, tf.int64))
        self.counts.assign_add(tf.one_hot(tf.clip_by_value(since, 0, LIMIT - 1), LIMIT))

    def reset_state(self) -> None:
        self.counts.assign(tf.zeros(LIMIT))
        self.pushes.assign(tf.constant(0, tf.int64))

    def result(self) -> dict[str, tf.Tensor]:
        counts = tf.convert_to_tensor(self.counts)
        updates = tf.range(LIMIT, dtype=counts.dtype)
        return {
            "staleness_mean": tf.math.divide_no_nan(
                tf.reduce_sum(counts * updates), tf.reduce_sum(counts)
            ),
            "staleness_max": tf.reduce_max(tf.where(counts > 0, updates, 0.0)),
        }


class AsynchronousModel(Resumable):
    """A model whose steps count the updates that others make while it computes its gradient.

    The optimizer's own counter does not tell: nothing keeps TensorFlow from raising it before the
    gradient is there, and it does.
    """

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        images, labels = data
        pulled = self.staleness.pushes.read_value()
        with tf.control_dependencies([pulled]):
            images = tf.identity(images)
        _, predicted, gradients = self.gradients(images, labels)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        with tf.control_dependencies(gradients):
            self.staleness.update_state(tf.identity(pulled))
        return self.compute_metrics(images, labels, predicted, None)
