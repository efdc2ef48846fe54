"""The classifier as a SavedModel."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from trainer.training.export import saved_model


def export(network: tf.keras.Model, target: Path) -> None:
    """Write a SavedModel in the place of the one at `target`.

    It takes images [n, size, size, 3] in 0…255 and returns `probabilities` [n, classes].
    """
    signature = tf.TensorSpec(network.input_shape, tf.float32, "image")

    def serve(image: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"probabilities": network(image, training=False)}

    saved_model(target, network.weights, serve, signature)
