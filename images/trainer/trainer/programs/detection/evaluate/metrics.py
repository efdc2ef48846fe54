"""COCO's mean average precision of detections, by pycocotools; no TensorFlow here."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pycocotools.cocoeval import COCOeval

from trainer.agent.errors import ContractError
from trainer.programs.detection.evaluate.detections import Detected, Truth

DETECTIONS_COUNTED = 100
"""Of an image, as COCO does."""


@dataclass(frozen=True)
class Figures:
    """Average precision, 0 to 1, over IoU thresholds .50 to .95, and at single ones.

    `map` is the mean over the classes that have a box; those without are left out of `per_class`.
    """

    map: float
    map_50: float
    map_75: float
    recall: float
    """Highest, over the same thresholds, of up to 100 detections an image."""
    per_class: Mapping[str, float]
    per_class_50: Mapping[str, float]
    images: int
    boxes: int

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Evaluation(COCOeval):  # type: ignore[misc]
    """pycocotools' evaluation of arrays; its own reads two files of COCO's JSON."""

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
    """The flags, bool [k]; all False if they are None."""
    return np.zeros(len(truth.classes), bool) if flags is None else flags


def placed(boxes: np.ndarray, classes: np.ndarray) -> list[tuple[list[float], int]]:
    """([x, y, width, height], class) of each box."""
    found = np.asarray(boxes, float).reshape(-1, 4)
    sizes = found[:, 2:] - found[:, :2]
    rows = np.stack([found[:, 1], found[:, 0], sizes[:, 1], sizes[:, 0]], 1).tolist()
    return list(zip(rows, np.asarray(classes).astype(int).tolist(), strict=True))


def average_precision(
    truths: Sequence[Truth], detected: Sequence[Detected], names: Mapping[int, str]
) -> Figures:
    """The figures of a set of images, `truths[i]` and `detected[i]` being of the same one.

    Args:
        names: of the classes, by the numbers that `classes` holds.
    Raises:
        ContractError: there is nothing to be found in any image.
    """
    boxes = sum(len(truth.classes) for truth in truths)
    if not boxes:
        raise ContractError(
            f"no average precision: {len(truths)} images, and not one box to be found in them; see"
            " that eval_input_reader.input_path names records with annotations"
        )
    classes = sorted(names)
    evaluation = Evaluation(truths, detected, classes)
    with contextlib.redirect_stdout(io.StringIO()):  # it prints what it is at
        evaluation.evaluate()
        evaluation.accumulate()
    # [thresholds, recall levels, classes, areas, detections]; -1 if a class has no box
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
    """The mean, rounded to six digits."""
    return round(float(np.mean(values)), 6)
