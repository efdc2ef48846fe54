"""In the image, which has pycocotools: average precision, compared with cases computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pycocotools", reason="pycocotools is in the image, not here")
from trainer.agent.errors import ContractError
from trainer.programs.detection.evaluate.draw import Detected, Truth
from trainer.programs.detection.evaluate.metrics import average_precision

NAMES = {1: "cat", 3: "dog"}
ONE = [0.1, 0.1, 0.5, 0.5]
TWO = [0.6, 0.6, 0.9, 0.9]
FAR = [0.0, 0.9, 0.05, 1.0]


def truth(boxes: list, classes: list[int], **flags: list[bool]) -> Truth:
    arrays = {key: np.array(value) for key, value in flags.items()}
    return Truth(np.array(boxes, float).reshape(-1, 4), np.array(classes, int), **arrays)


def found(boxes: list, classes: list[int], scores: list[float]) -> Detected:
    return Detected(
        np.array(boxes, float).reshape(-1, 4), np.array(classes, int), np.array(scores, float)
    )


def test_exact_detections_of_all_objects_give_one() -> None:
    figures = average_precision(
        [truth([ONE, TWO], [1, 3]), truth([], [])],
        [found([TWO, ONE], [3, 1], [0.2, 0.9]), found([], [], [])],
        NAMES,
    )
    assert (figures.map, figures.map_50, figures.map_75, figures.recall) == (1, 1, 1, 1)
    assert figures.per_class == figures.per_class_50 == {"cat": 1.0, "dog": 1.0}
    assert (figures.images, figures.boxes) == (2, 2)


def test_no_detections_give_zero() -> None:
    figures = average_precision([truth([ONE], [1])], [found([], [], [])], NAMES)
    assert (figures.map, figures.map_50, figures.recall) == (0, 0, 0)
    assert figures.per_class == {"cat": 0.0}


def test_a_wrong_box_counts_by_its_score() -> None:
    """Two cats. By score: correct, wrong, correct. Precision up to recall .5 is 1, then 2/3."""
    figures = average_precision(
        [truth([ONE, TWO], [1, 1])],
        [found([ONE, FAR, TWO], [1, 1, 1], [0.9, 0.8, 0.7])],
        NAMES,
    )
    by_hand = (51 * 1.0 + 50 * 2 / 3) / 101  # 101 recall levels, 0, 0.01, … 1
    assert figures.map_50 == pytest.approx(by_hand, abs=1e-6)
    assert figures.recall == 1
    last = found([ONE, FAR, TWO], [1, 1, 1], [0.9, 0.1, 0.7])
    assert average_precision([truth([ONE, TWO], [1, 1])], [last], NAMES).map_50 == 1


def test_a_loose_box_counts_up_to_its_overlap() -> None:
    """IoU .625 (a box 1.6 times as wide) is enough at .50, .55, .60: 3 thresholds of 10."""
    wide = [0.1, 0.1, 0.5, 0.74]
    figures = average_precision([truth([ONE], [1])], [found([wide], [1], [0.9])], NAMES)
    assert (figures.map_50, figures.map_75) == (1, 0)
    assert figures.map == pytest.approx(0.3)
    assert figures.recall == pytest.approx(0.3)


def test_a_second_box_on_the_same_object_is_wrong() -> None:
    figures = average_precision(
        [truth([ONE, TWO], [1, 1])],
        [found([ONE, ONE, TWO], [1, 1, 1], [0.9, 0.8, 0.7])],
        NAMES,
    )
    assert figures.map_50 == pytest.approx((51 + 50 * 2 / 3) / 101, abs=1e-6)


def test_the_class_must_be_correct_and_classes_without_boxes_are_omitted() -> None:
    figures = average_precision([truth([ONE], [1])], [found([ONE], [3], [0.9])], NAMES)
    assert figures.map_50 == 0 and figures.per_class_50 == {"cat": 0.0}
    half = average_precision(
        [truth([ONE, TWO], [1, 3])], [found([ONE, ONE], [1, 3], [0.9, 0.9])], NAMES
    )
    assert half.per_class_50 == {"cat": 1.0, "dog": 0.0} and half.map_50 == 0.5


def test_boxes_of_other_images_do_not_count() -> None:
    figures = average_precision(
        [truth([ONE], [1]), truth([TWO], [1])],
        [found([TWO], [1], [0.9]), found([ONE], [1], [0.9])],
        NAMES,
    )
    assert figures.map_50 == 0


@pytest.mark.parametrize("flag", ["difficult", "crowd"])
def test_difficult_boxes_and_crowds_do_not_affect_the_score(flag: str) -> None:
    wanted = truth([ONE, TWO], [1, 1], **{flag: [False, True]})
    for boxes, scores in (([ONE], [0.5]), ([TWO, ONE], [0.9, 0.5])):
        figures = average_precision([wanted], [found(boxes, [1] * len(boxes), scores)], NAMES)
        assert (figures.map_50, figures.recall) == (1, 1)


def test_several_detections_in_a_crowd_are_no_mistake() -> None:
    crowd = truth([ONE, [0.5, 0.5, 1.0, 1.0]], [1, 1], crowd=[False, True])
    inside = [[0.5, 0.5, 0.7, 0.7], [0.7, 0.7, 0.9, 0.9], ONE]
    figures = average_precision([crowd], [found(inside, [1] * 3, [0.9, 0.8, 0.7])], NAMES)
    assert figures.map_50 == 1


def test_without_any_object_there_is_an_error() -> None:
    with pytest.raises(ContractError, match="1 images, and not one box"):
        average_precision([truth([], [])], [found([ONE], [1], [0.9])], NAMES)
    only = truth([ONE], [1], difficult=[True])
    with pytest.raises(ContractError, match="all 1 boxes are difficult"):
        average_precision([only], [found([ONE], [1], [0.9])], NAMES)
    with pytest.raises(ContractError, match="classes that the label map does not have"):
        average_precision([truth([ONE], [7])], [found([ONE], [7], [0.9])], NAMES)


def test_figures_are_plain_numbers_for_json() -> None:
    figures = average_precision([truth([ONE], [1])], [found([ONE], [1], [0.9])], NAMES).as_dict()
    assert figures["per_class"] == {"cat": 1.0}
    assert all(type(figures[key]) in (float, int) for key in ("map", "map_50", "boxes", "recall"))
