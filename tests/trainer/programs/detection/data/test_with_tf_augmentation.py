"""With TensorFlow: the effect of augmentation on boxes and colours."""

from __future__ import annotations

import os

import numpy as np
import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")

from trainer.programs.detection.config.pipeline import Augmentation, Crop  # noqa: E402
from trainer.programs.detection.data import input_pipeline  # noqa: E402


def block(size: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Returns a white block on black, and its position."""
    pixels = np.zeros((size, size, 3), np.uint8)
    pixels[16:32, 20:48] = 255
    return pixels, np.array([[16, 20, 32, 48]], np.float32) / size


def around_white(image: np.ndarray) -> np.ndarray:
    """Returns the box of the bright pixels, in fractions."""
    rows, columns = np.nonzero(image.mean(-1) > 190)
    size = image.shape[0]
    return np.array([rows.min(), columns.min(), rows.max() + 1, columns.max() + 1]) / size


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "options",
    [
        Augmentation(),
        Augmentation(random_horizontal_flip=0.5),
        Augmentation(random_crop=Crop(probability=1.0, min_scale=1.0, max_scale=2.0)),
        Augmentation(random_crop=Crop(probability=0.5, min_scale=0.9), random_horizontal_flip=0.5),
    ],
)
def test_boxes_stay_around_their_objects(options: Augmentation, seed: int) -> None:
    pixels, boxes = block()
    image, moved, classes = input_pipeline.augmented(
        tf.constant(pixels), tf.constant(boxes), tf.constant([5]), options, 64, tf.constant(seed)
    )
    assert image.shape == (64, 64, 3)
    assert classes.numpy().tolist() == [5]
    np.testing.assert_allclose(moved[0], around_white(image.numpy()), atol=2.5 / 64)


def test_the_same_seed_gives_the_same_result_and_some_images_are_mirrored() -> None:
    pixels, boxes = block()
    options = Augmentation(random_horizontal_flip=0.5, hue=0.1, saturation=0.5, brightness=0.2)

    def once(seed: int) -> np.ndarray:
        found = input_pipeline.augmented(
            tf.constant(pixels), tf.constant(boxes), tf.constant([1]), options, 64, seed
        )
        return found[1].numpy()[0]

    assert (once(3) == once(3)).all()
    lefts = {round(float(once(seed)[1]), 3) for seed in range(12)}
    assert lefts == {round(20 / 64, 3), round(16 / 64, 3)}


def test_hardly_visible_boxes_are_dropped_and_boxes_at_the_edge_are_clipped() -> None:
    boxes = tf.constant([[0.0, 0.0, 0.2, 0.2], [0.4, 0.4, 0.6, 0.6], [0.6, 0.6, 0.9, 0.9]])
    window = tf.constant([0.3, 0.3, 0.8, 0.8])
    cut, classes = input_pipeline.seen_through(window, boxes, tf.constant([1, 2, 3]), 0.4)
    assert classes.numpy().tolist() == [2, 3]
    np.testing.assert_allclose(cut, [[0.2, 0.2, 0.6, 0.6], [0.6, 0.6, 1.0, 1.0]], atol=1e-6)
    _, classes = input_pipeline.seen_through(window, boxes, tf.constant([1, 2, 3]), 0.5)
    assert classes.numpy().tolist() == [2]


def test_colours_change_within_bounds() -> None:
    grey = tf.fill((4, 4, 3), 100.0)
    darker = input_pipeline.coloured(grey, Augmentation(brightness=0.2), [tf.constant(0.0)] * 4)
    np.testing.assert_allclose(darker, np.full((4, 4, 3), 100 - 51), atol=1e-3)
    bright = input_pipeline.coloured(
        tf.fill((4, 4, 3), 250.0), Augmentation(brightness=0.2), [tf.constant(1.0)] * 4
    )
    assert float(tf.reduce_max(bright)) == 255.0
