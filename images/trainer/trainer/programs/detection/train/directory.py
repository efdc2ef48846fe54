"""The train directory (/output): what the leader puts there before training and after it."""

from __future__ import annotations

import shutil
from pathlib import Path

import tensorflow as tf

from trainer import atomic
from trainer.errors import ContractError
from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.data.check import Checked, check
from trainer.programs.detection.data.label_map import LabelMap
from trainer.programs.detection.model import predict
from trainer.programs.detection.model.ssd import Detector
from trainer.programs.detection.options import PIPELINE, Options


def prepare(options: Options) -> Checked:
    """Look at all input, make the directory, and put a copy of the configuration in it.

    Raises:
        ContractError: what is wrong with the input, by file and record; or it cannot be written.
    """
    for line in options.left_aside:
        print(f"without effect: {line}", flush=True)
    found = check(options.pipeline)
    copy = options.output / PIPELINE
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        atomic.replace(copy, pipeline_file.to_toml(options.pipeline))
    except OSError as problem:
        raise ContractError(
            f"cannot write {copy}: {problem.strerror}; the output directory must be this user's"
        ) from problem
    print(
        f"{found.train.images} training images with {found.train.boxes} boxes,"
        f" {found.evaluation.images} to score with {found.evaluation.boxes};"
        f" {len(found.labels.names)} classes",
        flush=True,
    )
    return found


def export(detector: Detector, pipeline: Pipeline, labels: LabelMap, target: Path) -> None:
    """Write a SavedModel, with its label map, beside `target`, then put it in its place.

    It takes images uint8 [n, height, width, 3] of any size, and returns `boxes` [n, D, 4] (ymin,
    xmin, ymax, xmax in fractions of the image), `classes` [n, D] (ids of the label map, 0 for
    none), `scores` [n, D] and `count` [n]: `serving_default`, and `serve` for
    tf.saved_model.load.
    """
    new, old = target.with_name(f".{target.name}.new"), target.with_name(f".{target.name}.old")
    for left_over in (new, old):
        shutil.rmtree(left_over, ignore_errors=True)
    side = (pipeline.model.image_size,) * 2

    def serve(images: tf.Tensor) -> dict[str, tf.Tensor]:
        resized = tf.image.resize(images, side, antialias=True)
        predictions = detector.network(resized, training=False)
        return predict.detect(predictions, detector.loss, pipeline.model.post_processing)._asdict()

    signature = tf.TensorSpec((None, None, None, 3), tf.uint8, "images")
    archive = tf.Module()
    archive.weights = detector.network.weights
    archive.serve = tf.function(serve, input_signature=[signature])
    tf.saved_model.save(archive, str(new), signatures=archive.serve)
    (new / "label_map.pbtxt").write_text(labels.to_text())
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)
