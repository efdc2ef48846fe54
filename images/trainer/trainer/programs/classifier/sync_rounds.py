"""Synchronous training on parameter servers, in rounds that the chief coordinates.

In a round, every worker writes its gradient into a separate slot on the ps; after all have written,
the mean is applied once. If a worker is lost, its closure runs again and writes the same slot, so
no gradient counts twice. The slots take as much memory as the parameters, times the workers.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from trainer.programs.classifier.async_calls import AsyncCalls
from trainer.programs.classifier.interruption import Resumable
from trainer.programs.classifier.options import Options
from trainer.programs.training import packs
from trainer.programs.training.packs import Pack

keras = tf.keras


class SyncRounds:
    """The functions and variables of synchronous rounds.

    Args:
        network: compiled, built in the scope of a ParameterServerStrategy.
        dataset: makes a worker's endless batches (images, one-hot labels), on the worker.
        workers: gradients per round.
    """

    def __init__(
        self, network: Resumable, dataset: Callable[[], tf.data.Dataset], workers: int
    ) -> None:
        strategy = network.distribute_strategy
        self._network = network
        self._coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        batches = self._coordinator.create_per_worker_dataset(dataset)
        self._batches = iter(batches)
        network.optimizer.build(network.trainable_variables)
        self._packs = packs.packs_of(network.trainable_variables)
        self._slots = [slots(pack, workers) for pack in self._packs]
        with tf.device(network.trainable_variables[0].device):
            self._shown = tf.Variable(tf.zeros((workers, 2)), trainable=False)
            self._sums = tf.Variable(tf.zeros(3), trainable=False)
        self._slot_numbers = [tf.constant(number) for number in range(workers)]
        with strategy.scope():
            self._gradient = tf.function(
                self._compute_gradient, autograph=False
            ).get_concrete_function(
                tf.data.IteratorSpec(batches.element_spec), tf.TensorSpec((), tf.int32)
            )
            self._apply = tf.function(
                lambda: strategy.run(self._apply_mean), autograph=False
            ).get_concrete_function()

    def run(self, count: int, then: Callable[[], None] = lambda: None) -> dict[str, float]:
        """Train `count` rounds, and call `then` after each; returns the mean loss and accuracy."""
        self._sums.assign(tf.zeros(3))
        with self._network.distribute_strategy.scope():
            for _ in range(count):
                for slot in self._slot_numbers:
                    self._coordinator.schedule(self._gradient, (self._batches, slot))
                self._coordinator.join()
                self._apply()
                then()
        loss, accuracy, rounds = self._sums.numpy()
        return {"loss": float(loss / rounds), "accuracy": float(accuracy / rounds)}

    def _compute_gradient(self, batches: tf.data.Iterator, slot: tf.Tensor) -> None:
        """Runs on a worker: reads the variables, and writes the gradient into slot number
        `slot`."""
        images, labels = next(batches)
        network = self._network
        loss, predicted, gradients = network.gradients(images, labels)
        right = tf.reduce_mean(keras.metrics.categorical_accuracy(labels, predicted))
        pairs = list(zip(gradients, network.trainable_variables))
        for held, gradient in zip(self._slots, packs.packed_gradients(pairs, self._packs)):
            held.scatter_update(tf.IndexedSlices(gradient[tf.newaxis], slot[tf.newaxis]))
        shown = tf.stack([loss, right])[tf.newaxis]
        self._shown.scatter_update(tf.IndexedSlices(shown, slot[tf.newaxis]))

    def _apply_mean(self) -> None:
        """Runs on the ps: the chief only sends the request."""
        means = []
        for held in self._slots:
            with tf.device(held.device):
                means.append(tf.reduce_mean(held, axis=0))
        self._network.optimizer.apply_gradients(
            packs.unpacked_gradients(means, self._packs), skip_gradients_aggregation=True
        )
        with tf.device(self._sums.device):
            mean = tf.reduce_mean(self._shown, axis=0)
            self._sums.assign_add(tf.concat([mean, [1.0]], axis=0))


def slots(pack: Pack, count: int) -> tf.Variable:
    """Returns space for `count` gradients of a pack, [count, elements], on the same ps."""
    with tf.device(pack[0].device):
        zeros = tf.zeros((count, packs.elements_of(pack)), pack[0].dtype)
        return tf.Variable(zeros, trainable=False)


def fit_in_rounds(
    rounds: SyncRounds | AsyncCalls,
    network: Resumable,
    options: Options,
    steps: int,
    first_epoch: int,
    callbacks: list[keras.callbacks.Callback],
    then: Callable[[], None],
) -> None:
    """Run the remaining epochs as `fit` does, callbacks included, but in rounds instead of
    steps."""
    accompanying = keras.callbacks.CallbackList(callbacks, model=network)
    network.stop_training = False
    accompanying.on_train_begin()
    first_epoch, first_step = network._maybe_load_initial_counters_from_ckpt(steps, first_epoch)
    for epoch in range(int(first_epoch), options.epochs):
        accompanying.on_epoch_begin(epoch)
        accompanying.on_epoch_end(epoch, rounds.run(steps - first_step, then))
        first_step = 0
        if network.stop_training:
            break
    accompanying.on_train_end()
