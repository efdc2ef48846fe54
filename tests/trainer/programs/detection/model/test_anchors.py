"""Anchors, compared with values computed by hand."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("pydantic", reason="pydantic is in the image and in this project's environment")
from trainer.programs.detection.config.pipeline import Anchors
from trainer.programs.detection.model import anchors
from trainer.programs.detection.model.anchors import AnchorMap


def near(*numbers: float) -> object:
    return pytest.approx(numbers, abs=1e-9)


def test_anchors_are_ordered_by_row_column_and_shape():
    boxes = AnchorMap(1, 2, ((0.5, 0.5), (0.2, 0.4))).boxes()
    assert len(boxes) == 4
    assert boxes[0] == near(0.25, 0.0, 0.75, 0.5)
    assert boxes[1] == near(0.4, 0.05, 0.6, 0.45)
    assert boxes[2] == near(0.25, 0.5, 0.75, 1.0)
    below = AnchorMap(2, 1, ((0.5, 0.5),)).boxes()
    assert below == [near(0.0, 0.25, 0.5, 0.75), near(0.5, 0.25, 1.0, 0.75)]


def test_shapes_have_the_scales_area_and_the_ratio_of_width_to_height():
    options = Anchors(aspect_ratios=(1.0, 4.0), interpolated_scale_aspect_ratio=0.0)
    square, wide = anchors.shapes(options, 0.2, 0.8)
    assert square == near(0.2, 0.2)
    assert wide == near(0.1, 0.4)


def test_one_further_anchor_is_between_two_scales():
    options = Anchors(aspect_ratios=(1.0,), interpolated_scale_aspect_ratio=1.0)
    assert anchors.shapes(options, 0.2, 0.8) == (near(0.2, 0.2), near(0.4, 0.4))
    tall = Anchors(aspect_ratios=(1.0,), interpolated_scale_aspect_ratio=0.25)
    assert anchors.shapes(tall, 0.2, 0.8)[1] == near(0.8, 0.2)


def test_each_map_has_its_scale_and_the_last_one_covers_the_whole_image():
    options = Anchors(feature_strides=(16, 32), min_scale=0.2, max_scale=0.5, aspect_ratios=(1.0,))
    fine, coarse = anchors.anchor_maps(options, [(4, 4), (2, 2)])
    assert (len(fine.boxes()), len(coarse.boxes())) == (32, 8)
    assert fine.shapes == (near(0.2, 0.2), near(math.sqrt(0.1), math.sqrt(0.1)))
    assert coarse.shapes == (near(0.5, 0.5), near(math.sqrt(0.5), math.sqrt(0.5)))
