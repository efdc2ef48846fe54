"""The training job: a program in the style of TensorFlow's parameter-server tutorial.

It does not use the kit. In the plain way every container runs it; with the kit only the chief runs
it, and the kit provides the servers of ps and workers. The chief's last line is JSON.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import time
from pathlib import Path

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf

EXAMPLES = 512
SIDE = 32
CLASSES = 10


def serve(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> None:
    """Run a ps or worker: TensorFlow's server in Python, forever. Keras is not even loaded."""
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
    )
    print(f"{resolver.task_type} {resolver.task_id}: server ready, {server.target}", flush=True)
    server.join()


def dataset(batch: int, context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Returns a worker's endless stream of batches of random images; the class is the brightness of
    an image."""
    images = tf.random.stateless_uniform((EXAMPLES, SIDE, SIDE, 1), seed=(1, 2))
    bright = tf.random.stateless_uniform((EXAMPLES, 1, 1, 1), maxval=CLASSES, seed=(3, 4))
    labels = tf.cast(tf.reshape(bright, [-1]), tf.int64)
    data = tf.data.Dataset.from_tensor_slices((images * bright / CLASSES, labels))
    return data.shuffle(EXAMPLES).repeat().batch(batch).prefetch(2)


def layers(name: str) -> list[tf.keras.layers.Layer]:
    """Returns the layers: `cnn` computes, as a training does; `tiny` does little but send
    messages."""
    make = tf.keras.layers
    if name == "tiny":
        return [make.AveragePooling2D(4), make.Flatten(), make.Dense(64, activation="relu")]
    convolutions = []
    for filters in (16, 32, 64):
        convolutions += [
            make.Conv2D(filters, 3, padding="same", activation="relu"),
            make.MaxPooling2D(),
        ]
    return [*convolutions, make.Flatten(), make.Dense(64, activation="relu")]


def train(
    resolver: tf.distribute.cluster_resolver.ClusterResolver, given: argparse.Namespace
) -> None:
    """Run the chief: `fit` under ParameterServerStrategy."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        model = tf.keras.Sequential(
            [tf.keras.Input((SIDE, SIDE, 1)), *layers(given.model), tf.keras.layers.Dense(CLASSES)]
        )
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss=loss)
    history = model.fit(
        tf.keras.utils.experimental.DatasetCreator(functools.partial(dataset, given.batch)),
        epochs=given.epochs,
        steps_per_epoch=given.steps_per_epoch,
        callbacks=[in_turns(given.turns)] if given.turns else [],
        verbose=0,
    )
    steps = given.epochs * given.steps_per_epoch
    print(json.dumps({"steps": steps, "loss": history.history["loss"][-1]}), flush=True)


def in_turns(folder: Path) -> tf.keras.callbacks.Callback:
    """Train epoch N when the file go-N exists, then write the seconds that it took to done-N."""
    began = 0.0

    def wait(epoch: int, _logs: object) -> None:
        nonlocal began
        while not (folder / f"go-{epoch}").exists():
            time.sleep(0.005)
        began = time.monotonic()

    def tell(epoch: int, _logs: object) -> None:
        took = time.monotonic() - began
        beside = folder / f"writing-{epoch}"
        beside.write_text(f"{took:.6f}")
        beside.rename(folder / f"done-{epoch}")

    return tf.keras.callbacks.LambdaCallback(on_epoch_begin=wait, on_epoch_end=tell)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--model", choices=("cnn", "tiny"), default="tiny")
    options.add_argument("--batch", type=int, default=32, help="images of a step")
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--steps-per-epoch", type=int, default=100)
    options.add_argument("--turns", type=Path, help="train an epoch only when a file here says so")
    given = options.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("ps", "worker"):
        serve(resolver)
    else:
        train(resolver, given)


if __name__ == "__main__":
    main()
