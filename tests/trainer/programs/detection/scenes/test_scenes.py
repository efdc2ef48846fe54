"""The sample set's scenes: tight boxes, readable digits, reproducible. And drawing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from trainer.programs.detection.evaluate import draw
from trainer.programs.detection.evaluate.draw import Detected, Truth
from trainer.programs.detection.scenes import scene as scenes
from trainer.programs.detection.scenes.scene import (
    LEAST_CONTRAST,
    LUMINANCE,
    MOST_HIDDEN,
    QUALITY,
    SIDE,
    Scene,
    jpeg,
)

RING = np.zeros((8, 8), np.float32)
RING[1:7, 2:6] = 1
RING[2:6, 3:5] = 0


def stock() -> Iterator[tuple[str, np.ndarray]]:
    while True:
        yield "0", RING


def made(seed: int, count: int = 20) -> list[Scene]:
    random = np.random.default_rng(seed)
    return [scenes.scene(random, stock()) for _ in range(count)]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    one, same, other = made(1, 5), made(1, 5), made(2, 5)
    assert [jpeg(s.pixels, QUALITY) for s in one] == [jpeg(s.pixels, QUALITY) for s in same]
    assert [s.digits for s in one] == [s.digits for s in same]
    assert jpeg(one[0].pixels, QUALITY) != jpeg(other[0].pixels, QUALITY)


def test_digits_are_inside_have_a_sensible_size_and_hardly_overlap() -> None:
    counts = []
    for found in made(3, 60):
        assert found.pixels.shape == (SIDE, SIDE, 3)
        counts.append(len(found.digits))
        for index, digit in enumerate(found.digits):
            top, left, bottom, right = digit.sides
            assert 0 <= top < bottom <= SIDE and 0 <= left < right <= SIDE
            assert 12 <= bottom - top <= 75 and 8 <= right - left <= 75
            for other in found.digits[:index]:
                assert scenes.hidden(digit.sides, other.sides) <= MOST_HIDDEN
    assert set(counts) == {1, 2, 3, 4, 5}


def test_a_box_is_tight_around_the_ink() -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        glyph, (top, left, bottom, right) = scenes.free_position(RING, random, [])
        inked = np.argwhere(glyph >= scenes.INKED)
        assert inked.min(0).tolist() == [0, 0]
        assert (inked.max(0) + 1).tolist() == list(glyph.shape) == [bottom - top, right - left]


def test_only_what_is_covered_is_blended() -> None:
    pixels = np.full((scenes.SIDE, scenes.SIDE, 3), 100, np.float32)
    scenes.cover(pixels, (2, 3), np.array([[0.5, 0.0], [0.0, 1.0]], np.float32), np.full(3, 200.0))
    assert np.argwhere(pixels[..., 0] != 100).tolist() == [[2, 3], [3, 4]]
    assert pixels[2, 3].tolist() == [150] * 3 and pixels[3, 4].tolist() == [200] * 3


def test_ink_contrasts_with_any_background() -> None:
    random = np.random.default_rng(5)
    for ground in range(0, 256, 5):
        assert abs(scenes.ink_on(ground, random) @ LUMINANCE - ground) >= LEAST_CONTRAST


def test_overlap_of_boxes() -> None:
    assert scenes.hidden((0, 0, 10, 10), (10, 0, 20, 10)) == 0
    assert scenes.hidden((0, 0, 10, 10), (5, 0, 10, 10)) == 1
    assert scenes.hidden((0, 0, 10, 10), (8, 5, 40, 40)) == 0.1


def colours(image: object, box: tuple[int, int, int, int]) -> set[tuple[int, ...]]:
    pixels = np.asarray(image.crop(box))
    return set(map(tuple, pixels.reshape(-1, 3).tolist()))


def test_detections_and_ground_truth_have_different_colours() -> None:
    ground = np.full((160, 160, 3), 128, np.uint8)
    truth = Truth(np.array([[0.1, 0.1, 0.4, 0.4]]), np.array([1]))
    detected = Detected(
        np.array([[0.5, 0.5, 0.9, 0.9], [0.5, 0.05, 0.9, 0.3]]),
        np.array([2, 1]),
        np.array([0.9, 0.3]),
    )
    image = draw.drawn(ground, detected, truth, {1: "cat", 2: "dog"}, min_score=0.4)
    assert image.size == (320, 320)
    assert draw.WANTED in colours(image, (25, 25, 135, 135))
    assert draw.FOUND in colours(image, (155, 155, 295, 295))
    assert colours(image, (5, 150, 110, 300)) == {(128, 128, 128)}  # its score is too low
    nothing = draw.drawn(ground, detected, None, {}, min_score=0.95)
    assert colours(nothing, (0, 0, 320, 320)) == {(128, 128, 128)}


def test_boxes_outside_or_with_swapped_corners_are_drawn_as_far_as_possible() -> None:
    ground = np.zeros((400, 500, 3), np.uint8)
    wild = Detected(
        np.array([[-1.0, -1.0, 2.0, 2.0], [0.9, 0.9, 0.1, 0.1], [0.0, 0.98, 0.02, 1.0]]),
        np.array([1, 1, 99]),
        np.array([0.9, 0.8, 0.7]),
    )
    assert draw.drawn(ground, wild, None, {1: "a name that is rather long" * 9}).size == (500, 400)


def test_a_sheet_contains_all_images_in_rows() -> None:
    image = draw.drawn(
        np.zeros((320, 320, 3), np.uint8),
        Detected(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0)),
        None,
        {},
    )
    two_rows = draw.sheet([image] * 5, columns=4)
    one = draw.sheet([image], columns=4)
    assert two_rows.width == 4 * 328 + 8 and two_rows.height > 2 * 328
    assert one.width == 328 + 8
    with pytest.raises(ValueError, match="no images"):
        draw.sheet([])
