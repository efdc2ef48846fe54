"""Asynchronous training on parameter servers: the chief sends each worker several steps at a time.

A message from the chief to a worker takes the chief several milliseconds of CPU time, so a worker
makes several steps for each. Every step pulls the variables anew, and pushes its gradient at once.

A worker counts its steps on the ps. If it is lost, another worker continues its call at the step at
which it stopped, so at most one step of each lost worker is made twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from trainer.programs.classifier.interruption import Coordinated
from trainer.programs.classifier.schedule import are_even, calls_of

keras = tf.keras

LIMIT = 256
"""The largest staleness that the histogram stores; larger values are counted as this value."""
MOST_CALLS = 1024
"""The number of tallies; the chief sends at most so many calls before it waits for all of them."""
STEPS, LOSS, RIGHT, SECONDS = range(4)
"""Columns of the tallies: steps made, the sums of their losses and accuracies, and their time."""


class AsyncCalls:
    """The function that workers run, and its variables on the ps.

    Also counts the staleness of gradients: updates by others between a step's pull and its push.
    The optimizer's counter does not show this: TensorFlow can increase it before the gradient is
    computed.

    Args:
        network: compiled, built in the scope of a ParameterServerStrategy.
        dataset: makes a worker's endless batches (images, one-hot labels), on the worker.
        exactly: the number of steps of each call; None: chosen by their speed.
    """

    def __init__(
        self,
        network: Coordinated,
        dataset: Callable[[], tf.data.Dataset],
        workers: int,
        exactly: int | None = None,
    ) -> None:
        self._network, self._workers, self._exactly = network, workers, exactly
        self._strategy = network.distribute_strategy
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(self._strategy)
        self._batches = iter(self._coordinator.create_per_worker_dataset(dataset))
        with tf.device(network.trainable_variables[0].device):
            self._tallies = tf.Variable(tf.zeros((MOST_CALLS, 4)), trainable=False)
            self._pushes = tf.Variable(tf.constant(0, tf.int64), trainable=False)
            self._stale = tf.Variable(tf.zeros(LIMIT), trainable=False)
        self._call = tf.function(self._make_steps, autograph=False)
        self._call.cluster_kit_steps = lambda _batches, _call, steps: steps
        self._speed, self._even = 0.0, False

    def run(self, count: int, then: Callable[[], None] = lambda: None) -> dict[str, float]:
        """Make `count` steps; returns their mean loss and accuracy, and their staleness.

        `then` is not called: a snapshot of asynchronous training can be taken at any time.
        """
        if not self._speed and not self._exactly:
            count, first = count - min(count, self._workers), min(count, self._workers)
            tallies = self._made([1] * first)  # they build the functions on the workers
            probe = min(count, 2 * self._workers)
            tallies += self._timed([1] * probe)
            tallies += self._timed(self._calls(count - probe))
        else:
            tallies = self._timed(self._calls(count))
        steps, loss, right, _ = tallies
        stale = self._stale.numpy()
        self._stale.assign(tf.zeros(LIMIT))
        seen = stale.nonzero()[0]
        return {
            "loss": float(loss / steps),
            "accuracy": float(right / steps),
            "staleness_mean": float(stale @ np.arange(LIMIT) / max(1.0, stale.sum())),
            "staleness_max": float(seen.max(initial=0)),
        }

    def _calls(self, count: int) -> list[int]:
        return calls_of(count, self._workers, self._speed, self._exactly, even=self._even)

    def _timed(self, calls: list[int]) -> np.ndarray:
        """Like `_made`, and measures the mean speed of a worker."""
        began = time.monotonic()
        tallies = self._made(calls)
        if calls:
            self._speed = sum(calls) / (time.monotonic() - began) / self._workers
        return tallies

    def _made(self, calls: list[int]) -> np.ndarray:
        """Let the workers make these calls; returns the sum of the tallies."""
        total = np.zeros(4)
        for first in range(0, len(calls), MOST_CALLS):
            self._tallies.assign(tf.zeros((MOST_CALLS, 4)))
            for call, steps in enumerate(calls[first : first + MOST_CALLS]):
                numbers = tf.constant(call), tf.constant(steps)
                self._coordinator.schedule(self._call, (self._batches, *numbers))
            self._coordinator.join()
            tallies = self._tallies.numpy()
            total += tallies.sum(0)
            self._even = are_even(tallies[:, [STEPS, SECONDS]].tolist())
        return total

    def _make_steps(self, batches: tf.data.Iterator, call: tf.Tensor, steps: tf.Tensor) -> None:
        """Runs on a worker: makes the steps of a call that no other worker has made."""

        def step(made: tf.Tensor) -> tuple[tf.Tensor]:
            images, labels = next(batches)
            self._strategy.run(self._step, (images, labels, call))
            return (made + 1,)

        began = tf.timestamp()
        with tf.control_dependencies([began]):
            made = tf.cast(self._tallies[call, STEPS], tf.int32)
        ended = tf.while_loop(lambda made: made < steps, step, (made,), parallel_iterations=1)
        with tf.control_dependencies(ended):
            seconds = tf.cast(tf.timestamp() - began, tf.float32)
        with tf.device(self._pushes.device):
            add(self._tallies, call, tf.one_hot(SECONDS, 4) * seconds)

    def _step(self, images: tf.Tensor, labels: tf.Tensor, call: tf.Tensor) -> None:
        network = self._network
        on_ps = self._pushes.device
        with tf.device(on_ps):
            pulled = self._pushes.read_value()
        with tf.control_dependencies([pulled]):
            images = tf.identity(images)
        loss, predicted, gradients = network.gradients(images, labels)
        network.optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        right = tf.reduce_mean(keras.metrics.categorical_accuracy(labels, predicted))
        with tf.control_dependencies(gradients):
            tally = tf.stack([1.0, loss, right, 0.0])
        with tf.device(on_ps):
            arrived = tf.identity(tally)
            with tf.control_dependencies([arrived]):
                since = self._pushes.read_value() - pulled
                self._pushes.assign_add(tf.constant(1, tf.int64))
            add(self._stale, tf.clip_by_value(since, 0, LIMIT - 1), tf.constant(1.0))
            add(self._tallies, call, arrived)


def add(rows: tf.Variable, row: tf.Tensor, values: tf.Tensor) -> None:
    """Add values to one row of a variable, which several workers may do at the same time."""
    rows.scatter_add(tf.IndexedSlices(values[tf.newaxis], row[tf.newaxis]))
