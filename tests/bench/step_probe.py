"""Measures in a task's container the CPU time of the kit's step counter itself, in real steps.

step_probe.py fit|loop STEPS ; prints the CPU time per step of the counter's thread and of its hook
in `fit`. The hook is timed in every other step, and Keras's own method in the others.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import tensorflow as tf
from tensorflow import keras

WARM_UP, EPOCHS = 50, 10
now = time.thread_time_ns


def main(how: str, steps: int) -> None:
    images, labels = tf.random.normal([640, 16]), tf.random.uniform([640], 0, 10, tf.int32)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(64)
    layers = [keras.Input((16,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(10)]
    model, optimizer = keras.Sequential(layers), keras.optimizers.SGD(0.01)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    hook = keras.callbacks.CallbackList.on_train_batch_end
    hooked, plain = ([], []) if how == "fit" else ([0], [0])

    def timed(self: object, batch: object, logs: object = None) -> object:
        kept = hook.looks_at.logs  # so that it is freed after the measurement, in both cases
        call, spent = (hook, hooked) if batch % 2 else (hook.__wrapped__, plain)
        began = now()
        result = call(self, batch, logs)
        spent.append(now() - began)
        del kept
        return result

    if how == "fit":
        keras.callbacks.CallbackList.on_train_batch_end = timed
        model.compile(optimizer, loss)

    @tf.function
    def step(x: tf.Tensor, y: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, weights), weights, strict=True))

    def train(count: int, epochs: int = 1) -> None:
        if how == "fit":
            model.fit(data, epochs=epochs, steps_per_epoch=count // epochs, verbose=0)
        else:
            for x, y in data.take(count):
                step(x, y)

    def thread_ns() -> int:
        thread = Path(f"/proc/self/task/{hook.looks_at._thread.native_id}/schedstat")
        return int(thread.read_text().split()[0])

    train(WARM_UP)
    hooked[WARM_UP:], plain[WARM_UP:] = [], []
    before = thread_ns(), time.process_time_ns(), time.monotonic_ns()
    train(steps, EPOCHS)
    after = thread_ns(), time.process_time_ns(), time.monotonic_ns()
    thread, process, wall = (now - then for now, then in zip(after, before, strict=True))
    own = statistics.fmean(hooked) - statistics.fmean(plain)
    print(
        f"{how}, {steps} steps of {wall / steps / 1e6:.2f} ms ({process / steps / 1e6:.2f} ms of"
        f" CPU): thread {thread / steps:.0f} ns, {thread / wall:.3%} of a core; hook {own:.0f} ns"
        f" (median {statistics.median(hooked) - statistics.median(plain):.0f}); together"
        f" {(thread + max(own, 0) * steps) / process:.3%} of the CPU time of a step"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
