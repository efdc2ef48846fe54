"""Computes a network's loss, and COCO's mean average precision of its detections (pycocotools)."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from PIL import Image
from pycocotools.cocoeval import COCOeval

from trainer.agent.errors import ContractError
from trainer.programs.detection.config.pipeline import Pipeline
from trainer.programs.detection.data import input_pipeline
from trainer.programs.detection.data.input_pipeline import ScoredBatch
from trainer.programs.detection.data.label_map import LabelMap
from trainer.programs.detection.evaluate import draw
from trainer.programs.detection.evaluate.draw import Detected, Truth
from trainer.programs.detection.model import loss, ssd
from trainer.programs.detection.model.ssd import Detector

DETECTIONS_COUNTED = 100
"""The maximum number of detections per image, as in COCO."""


@dataclass(frozen=True)
class Figures:
    """Average precision from 0 to 1: the mean over IoU thresholds .50 to .95, and at single
    thresholds.

    `map` is the mean over the classes that have a box; classes without a box are not in
    `per_class`.
    """

    map: float
    map_50: float
    map_75: float
    recall: float
    """The highest recall over the same thresholds, with up to 100 detections per image."""
    per_class: Mapping[str, float]
    per_class_50: Mapping[str, float]
    images: int
    boxes: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Evaluation(COCOeval):  # type: ignore[misc]
    """Evaluates arrays with pycocotools, whose own classes read two JSON files."""

    def __init__(
        self, truths: Sequence[Truth], detected: Sequence[Detected], classes: Sequence[int]
    ) -> None:
        super().__init__(iouType="bbox")
        self.truths, self.detected = truths, detected
        self.params.imgIds = list(range(len(truths)))
        self.params.catIds = list(classes)
        self.params.areaRng, self.params.areaRngLbl = [[0, 1e10]], ["all"]
        self.params.maxDets = [DETECTIONS_COUNTED]

    def _prepare(self) -> None:
        for image, (truth, detected) in enumerate(zip(self.truths, self.detected, strict=True)):
            difficult, crowd = full(truth.difficult, truth), full(truth.crowd, truth)
            for index, (bbox, number) in enumerate(placed(truth.boxes, truth.classes)):
                self._gts[image, number].append({
                    "id": index + 1, "bbox": bbox, "area": bbox[2] * bbox[3],
                    "iscrowd": int(crowd[index]), "ignore": int(difficult[index] or crowd[index]),
                })  # fmt: skip
            for index, (bbox, number) in enumerate(placed(detected.boxes, detected.classes)):
                self._dts[image, number].append({
                    "id": index + 1, "bbox": bbox, "area": bbox[2] * bbox[3],
                    "score": float(detected.scores[index]),
                })  # fmt: skip


def full(flags: np.ndarray | None, truth: Truth) -> np.ndarray:
    """Returns the flags, bool [k]; all False if they are None."""
    return np.zeros(len(truth.classes), bool) if flags is None else flags


def placed(boxes: np.ndarray, classes: np.ndarray) -> list[tuple[list[float], int]]:
    """Returns ([x, y, width, height], class) of each box."""
    array = np.asarray(boxes, float).reshape(-1, 4)
    sizes = array[:, 2:] - array[:, :2]
    rows = np.stack([array[:, 1], array[:, 0], sizes[:, 1], sizes[:, 0]], 1).tolist()
    return list(zip(rows, np.asarray(classes).astype(int).tolist(), strict=True))


def average_precision(
    truths: Sequence[Truth], detected: Sequence[Detected], names: Mapping[int, str]
) -> Figures:
    """Returns the figures of a set of images; `truths[i]` and `detected[i]` belong to the same
    image.

    Args:
        names: the names of the classes, by number.
    Raises:
        ContractError: no image has an object to detect.
    """
    boxes = sum(len(truth.classes) for truth in truths)
    if not boxes:
        raise ContractError(
            f"no average precision: {len(truths)} images, and not one box to be found in them; see"
            " that eval_input_reader.input_path names records with annotations"
        )
    classes = sorted(names)
    evaluation = Evaluation(truths, detected, classes)
    with contextlib.redirect_stdout(io.StringIO()):  # pycocotools prints its progress
        evaluation.evaluate()
        evaluation.accumulate()
    # [thresholds, recall levels, classes, areas, detections]; -1 for a class without a box
    precision = evaluation.eval["precision"][:, :, :, 0, 0]
    recall = evaluation.eval["recall"][:, :, 0, 0]
    half, three_quarters = (int(np.argmin(abs(evaluation.params.iouThrs - t))) for t in (0.5, 0.75))
    scored = [k for k in range(len(classes)) if precision[:, :, k].max(initial=-1) > -1]
    if not scored:
        raise ContractError(
            f"no average precision: all {boxes} boxes are difficult, crowds, or of classes that the"
            " label map does not have"
        )
    return Figures(
        map=mean(precision[:, :, scored]),
        map_50=mean(precision[half][:, scored]),
        map_75=mean(precision[three_quarters][:, scored]),
        recall=mean(recall[:, scored]),
        per_class={names[classes[k]]: mean(precision[:, :, k]) for k in scored},
        per_class_50={names[classes[k]]: mean(precision[half, :, k]) for k in scored},
        images=len(truths),
        boxes=boxes,
    )


def mean(values: np.ndarray) -> float:
    """Returns the mean, rounded to six digits."""
    return round(float(np.mean(values)), 6)


CACHE_BYTES = 256 << 20
"""Decoded images are cached in memory if they need no more than this."""


@dataclass(frozen=True)
class Score:
    """The score of one set of weights; `loss` is the mean over the images, without weight decay."""

    loss: float
    figures: Figures
    seen: tuple[tuple[np.ndarray, Truth, Detected], ...]
    """The images (uint8) to draw, each with its ground truth and detections."""


class Scorer:
    """Scores the network of `detector` with its current weights."""

    def __init__(
        self, pipeline: Pipeline, detector: Detector, labels: LabelMap, images: int
    ) -> None:
        self._pipeline = pipeline
        self._detector = detector
        self._names = labels.names
        self._batches = input_pipeline.scoring(pipeline)
        if images * pipeline.model.image_size**2 * 3 * 4 <= CACHE_BYTES:
            self._batches = self._batches.cache()
        self._look = tf.function(self._looked_at, reduce_retracing=True, autograph=False)

    def score(self) -> Score:
        losses, truths, per_image, seen = [], [], [], []
        for tensors in self._batches:
            of_images, detections = self._look(tensors)
            batch = ScoredBatch(*(tensor.numpy() for tensor in tensors))
            detections = ssd.Detections(*(tensor.numpy() for tensor in detections))
            losses.append(of_images.numpy())
            for index in range(len(batch.count)):
                truths.append(truth_of(batch, index))
                per_image.append(detected_of(detections, index))
                if len(seen) < self._pipeline.eval_config.num_visualizations:
                    image = np.clip(np.round(batch.images[index]), 0, 255).astype(np.uint8)
                    seen.append((image, truths[-1], per_image[-1]))
        return Score(
            round(float(np.mean(np.concatenate(losses))), 6),
            average_precision(truths, per_image, self._names),
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
        """Returns the first images of `score` with their detections, all of one size."""
        least = self._pipeline.eval_config.min_score_threshold
        return [
            draw.drawn(image, detections, truth, self._names, least)
            for image, truth, detections in score.seen[:most]
        ]

    def _looked_at(self, batch: ScoredBatch) -> tuple[tf.Tensor, ssd.Detections]:
        predictions = self._detector.network(batch.images, training=False)
        wanted = loss.truth(batch.boxes, tf.where(batch.crowd, 0, batch.classes))
        options = self._pipeline.model.post_processing
        return (
            self._detector.loss(wanted, predictions),
            ssd.detect(predictions, self._detector.loss, options),
        )


def truth_of(batch: ScoredBatch, index: int) -> Truth:
    """Returns the ground truth of one image; `batch` has numpy arrays."""
    columns = (batch.boxes, batch.classes, batch.difficult, batch.crowd)
    return Truth(*(column[index, : batch.count[index]] for column in columns))


def detected_of(detections: ssd.Detections, index: int) -> Detected:
    """Returns the detections of one image; `detections` has numpy arrays."""
    columns = (detections.boxes, detections.classes, detections.scores)
    return Detected(*(column[index, : detections.count[index]] for column in columns))
