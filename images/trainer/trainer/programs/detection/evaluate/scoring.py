"""How good a network is: its loss and its mean average precision on the evaluation images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image

from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.data import input_pipeline
from trainer.programs.detection.data.input_pipeline import ScoredBatch
from trainer.programs.detection.data.label_map import LabelMap
from trainer.programs.detection.evaluate import draw, metrics
from trainer.programs.detection.evaluate.detections import Detected, Truth
from trainer.programs.detection.evaluate.metrics import Figures
from trainer.programs.detection.model import loss, predict
from trainer.programs.detection.model.ssd import Detector

CACHE_BYTES = 256 << 20
"""Decoded images are kept in memory if they need no more than this."""


@dataclass(frozen=True)
class Score:
    """Of one set of weights; `loss` is the mean over the images, without weight decay."""

    loss: float
    figures: Figures
    seen: tuple[tuple[np.ndarray, Truth, Detected], ...]
    """The images (uint8) to be drawn."""


class Scorer:
    """Scores the network of `detector`, whatever weights it has at the time."""

    def __init__(
        self, pipeline: Pipeline, detector: Detector, labels: LabelMap, images: int
    ) -> None:
        self._pipeline = pipeline
        self._detector = detector
        self._names = labels.names
        self._batches = input_pipeline.scoring(pipeline)
        if images * pipeline.model.image_size**2 * 3 * 4 <= CACHE_BYTES:
            self._batches = self._batches.cache()
        self._look = tf.function(self._looked_at, reduce_retracing=True)

    def score(self) -> Score:
        losses, truths, found, seen = [], [], [], []
        for tensors in self._batches:
            of_images, detections = self._look(tensors)
            batch = ScoredBatch(*(tensor.numpy() for tensor in tensors))
            detections = predict.Detections(*(tensor.numpy() for tensor in detections))
            losses.append(of_images.numpy())
            for index in range(len(batch.count)):
                truths.append(truth_of(batch, index))
                found.append(detected_of(detections, index))
                if len(seen) < self._pipeline.eval_config.num_visualizations:
                    image = np.clip(np.round(batch.images[index]), 0, 255).astype(np.uint8)
                    seen.append((image, truths[-1], found[-1]))
        return Score(
            round(float(np.mean(np.concatenate(losses))), 6),
            metrics.average_precision(truths, found, self._names),
            tuple(seen),
        )

    def draw(self, score: Score, file: Path) -> None:
        """Write the images of `score` with their detections to `file`, a PNG."""
        if not score.seen:
            return
        drawn = self.drawn(score)
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}")
        draw.sheet(drawn).save(new, format="PNG")
        new.rename(file)

    def drawn(self, score: Score, most: int | None = None) -> list[Image.Image]:
        """The images of `score`, or the first so many, with their detections, all of one size."""
        least = self._pipeline.eval_config.min_score_threshold
        return [
            draw.drawn(image, found, truth, self._names, least)
            for image, truth, found in score.seen[:most]
        ]

    def _looked_at(self, batch: ScoredBatch) -> tuple[tf.Tensor, predict.Detections]:
        predictions = self._detector.network(batch.images, training=False)
        wanted = loss.truth(batch.boxes, tf.where(batch.crowd, 0, batch.classes))
        options = self._pipeline.model.post_processing
        return (
            self._detector.loss(wanted, predictions),
            predict.detect(predictions, self._detector.loss, options),
        )


def truth_of(batch: ScoredBatch, index: int) -> Truth:
    """Of one image; `batch` holds numpy arrays."""
    columns = (batch.boxes, batch.classes, batch.difficult, batch.crowd)
    return Truth(*(column[index, : batch.count[index]] for column in columns))


def detected_of(detections: predict.Detections, index: int) -> Detected:
    """Of one image; `detections` holds numpy arrays."""
    columns = (detections.boxes, detections.classes, detections.scores)
    return Detected(*(column[index, : detections.count[index]] for column in columns))
