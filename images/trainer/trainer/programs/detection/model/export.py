"""The detector as a SavedModel."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.data.label_map import LabelMap
from trainer.programs.detection.model import predict
from trainer.programs.detection.model.ssd import Detector
from trainer.programs.training.export import saved_model


def export(detector: Detector, pipeline: Pipeline, labels: LabelMap, target: Path) -> None:
    """Write a SavedModel, with its label map, in the place of the one at `target`.

    It takes images uint8 [n, height, width, 3] of any size, and returns `boxes` [n, D, 4] (ymin,
    xmin, ymax, xmax in fractions of the image), `classes` [n, D] (ids of the label map, 0 for
    none), `scores` [n, D] and `count` [n].
    """
    side = (pipeline.model.image_size,) * 2

    def serve(images: tf.Tensor) -> dict[str, tf.Tensor]:
        resized = tf.image.resize(images, side, antialias=True)
        predictions = detector.network(resized, training=False)
        return predict.detect(predictions, detector.loss, pipeline.model.post_processing)._asdict()

    signature = tf.TensorSpec((None, None, None, 3), tf.uint8, "images")

    def also(directory: Path) -> None:
        (directory / "label_map.pbtxt").write_text(labels.to_text())

    saved_model(target, detector.network.weights, serve, signature, also)
