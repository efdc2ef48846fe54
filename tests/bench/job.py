"""What is trained: a program in the style of TensorFlow's own parameter-server tutorial.

It knows nothing of the kit. The plain way runs it in every container; the kit runs it in the chief
alone and serves ps and workers itself. The chief's last line is JSON: its steps per second.
"""

from __future__ import annotations

import argparse
import json
import os
import time

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf

FEATURES = 32
EXAMPLES = 1024
BATCH = 64


def serve(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> None:
    """A ps or worker: TensorFlow's server in Python, for ever. Keras is not even loaded."""
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
    )
    print(f"{resolver.task_type} {resolver.task_id}: server ready, {server.target}", flush=True)
    server.join()


def dataset(context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Every worker's own endless stream of the same small regression problem."""
    x = tf.random.stateless_uniform((EXAMPLES, FEATURES), seed=(1, 2))
    y = tf.reduce_sum(tf.sin(x), axis=1, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(EXAMPLES).repeat()
    return data.batch(BATCH).prefetch(2)


def train(
    resolver: tf.distribute.cluster_resolver.ClusterResolver, epochs: int, steps: int
) -> None:
    """The chief: `fit` under ParameterServerStrategy."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        layers = [tf.keras.layers.Dense(64, activation="relu") for _ in range(2)]
        model = tf.keras.Sequential(
            [tf.keras.Input((FEATURES,)), *layers, tf.keras.layers.Dense(1)]
        )
        model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss="mse")
    ends: list[float] = []
    note = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ends.append(time.monotonic()))
    history = model.fit(
        tf.keras.utils.experimental.DatasetCreator(dataset),
        epochs=epochs,
        steps_per_epoch=steps,
        callbacks=[note],
        verbose=0,
    )
    told = {"steps": epochs * steps, "loss": history.history["loss"][-1]}
    if epochs > 1:
        told["steps_per_s"] = (epochs - 1) * steps / (ends[-1] - ends[0])
    print(json.dumps(told), flush=True)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--steps-per-epoch", type=int, default=100)
    given = options.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("ps", "worker"):
        serve(resolver)
    else:
        train(resolver, given.epochs, given.steps_per_epoch)


if __name__ == "__main__":
    main()
