"""How stale gradients are when they arrive: updates by others between a step's pull and push."""

from __future__ import annotations

import tensorflow as tf

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

    def update_state(self, updates: tf.Tensor) -> None:
        """Count one step, with `updates` (int64 scalar) by others in between."""
        self.counts.assign_add(tf.one_hot(tf.clip_by_value(updates, 0, LIMIT - 1), LIMIT))

    def reset_state(self) -> None:
        self.counts.assign(tf.zeros(LIMIT))

    def result(self) -> dict[str, tf.Tensor]:
        counts = tf.convert_to_tensor(self.counts)
        updates = tf.range(LIMIT, dtype=counts.dtype)
        return {
            "staleness_mean": tf.math.divide_no_nan(
                tf.reduce_sum(counts * updates), tf.reduce_sum(counts)
            ),
            "staleness_max": tf.reduce_max(tf.where(counts > 0, updates, 0.0)),
        }


class AsynchronousModel(keras.Model):
    """A model whose steps count the updates that others make while it computes its gradient."""

    def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
        images, labels = data
        before = self.optimizer.iterations.read_value()
        with tf.GradientTape() as tape:
            predicted = self(images, training=True)
            loss = self.compute_loss(images, labels, predicted)
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        by_all = self.optimizer.iterations.read_value() - before
        self.staleness.update_state(by_all - 1)
        return self.compute_metrics(images, labels, predicted, None)
