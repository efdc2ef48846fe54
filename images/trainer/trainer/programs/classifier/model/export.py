"""The classifier as a SavedModel, with the same in Keras' own format in its directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import tensorflow as tf

from trainer.programs.classifier.model import architecture
from trainer.programs.classifier.options import Options
from trainer.programs.training.export import saved_model

KERAS = "model.keras"
TF_KERAS = "model-tf_keras.keras"
CLASSES = "classes.txt"


def export(network: tf.keras.Model, target: Path, options: Options, classes: Sequence[str]) -> None:
    """Write a SavedModel in the place of the one at `target`.

    It takes images [n, size, size, 3] in 0…255 and returns `probabilities` [n, classes]. Its
    directory also holds KERAS, the same for Keras 3, TF_KERAS, for tf_keras (neither of the two
    reads the other's files), and CLASSES, their names in order, a line each.
    """
    signature = tf.TensorSpec(network.input_shape, tf.float32, "image")

    def serve(image: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"probabilities": network(image, training=False)}

    def also(directory: Path) -> None:
        import keras

        twin(network, options, keras).save(str(directory / KERAS))
        twin(network, options, tf.keras).save(str(directory / TF_KERAS))
        (directory / CLASSES).write_text("".join(f"{name}\n" for name in classes))

    saved_model(target, network.weights, serve, signature, also)


def twin(network: tf.keras.Model, options: Options, library: ModuleType) -> object:
    """The same model, weights included, made of the layers of another Keras, and not compiled."""
    made = architecture.network(options, network.output_shape[-1], library.Model, library)
    theirs = [layer for layer in network.layers if layer.weights]
    ours = [layer for layer in made.layers if layer.weights]
    for layer, original in zip(ours, theirs):
        layer.set_weights(original.get_weights())
    return made
