"""What is done at random to a training image and its boxes; the same `seed` gives the same."""

from __future__ import annotations

import math

import tensorflow as tf

from trainer.programs.detection.config.train_fields import Augmentation, Crop

GREY = 127.5
DRAWS = 10


def augmented(
    image: tf.Tensor,
    boxes: tf.Tensor,
    classes: tf.Tensor,
    options: Augmentation,
    size: int,
    seed: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """(image float32 [size, size, 3] in 0…255, boxes, classes) of an image uint8 [h, w, 3].

    Boxes [k, 4] and classes [k] come back without what has gone out of the window.
    """
    drawn = tf.unstack(tf.random.stateless_uniform([DRAWS], tf.stack([seed, 0])))
    if options.random_crop:
        window = random_window(options.random_crop, drawn[:5])
        boxes, classes = seen_through(window, boxes, classes, options.random_crop.min_visible)
        image = tf.image.crop_and_resize(
            tf.cast(image, tf.float32)[tf.newaxis], [window], [0], (size, size),
            extrapolation_value=GREY,
        )[0]  # fmt: skip
    else:
        image = tf.image.resize(image, (size, size), antialias=True)
    image = tf.ensure_shape(image, (size, size, 3))
    if options.random_horizontal_flip:
        flip = drawn[5] < options.random_horizontal_flip
        image = tf.where(flip, image[:, ::-1], image)
        ymin, xmin, ymax, xmax = tf.unstack(boxes, axis=1)
        boxes = tf.where(flip, tf.stack([ymin, 1 - xmax, ymax, 1 - xmin], 1), boxes)
    return coloured(image, options, drawn[6:]), boxes, classes


def random_window(crop: Crop, drawn: list[tf.Tensor]) -> tf.Tensor:
    """[ymin, xmin, ymax, xmax] in fractions of the image; it may stick out, then that is grey."""
    chance, scale, aspect, down, right = drawn
    scale = crop.min_scale + (crop.max_scale - crop.min_scale) * scale
    stretch = tf.exp((aspect - 0.5) * math.log(crop.max_aspect_change))
    height, width = scale / stretch, scale * stretch
    top, left = down * (1 - height), right * (1 - width)
    window = tf.stack([top, left, top + height, left + width])
    return tf.where(chance < crop.probability, window, [0.0, 0.0, 1.0, 1.0])


def seen_through(
    window: tf.Tensor, boxes: tf.Tensor, classes: tf.Tensor, min_visible: float
) -> tuple[tf.Tensor, tf.Tensor]:
    """Boxes in fractions of the window, cut off at its edge; without those that hardly show."""
    corner = tf.concat([window[:2], window[:2]], 0)
    sides = tf.concat([window[2:] - window[:2]] * 2, 0)
    moved = (boxes - corner) / sides
    cut = tf.clip_by_value(moved, 0.0, 1.0)
    visible = tf.math.divide_no_nan(area(cut), area(moved))
    kept = (visible >= min_visible) & (area(cut) > 0)
    return tf.boolean_mask(cut, kept), tf.boolean_mask(classes, kept)


def area(boxes: tf.Tensor) -> tf.Tensor:
    """Areas [n] of boxes [n, 4]."""
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def coloured(image: tf.Tensor, options: Augmentation, drawn: list[tf.Tensor]) -> tf.Tensor:
    """Brightness, contrast, saturation and hue, each if it is asked for."""
    light, contrast, saturation, hue = (2 * number - 1 for number in drawn)
    if options.hue or options.saturation:
        image = tf.clip_by_value(image, 0.0, 255.0) / 255.0
        if options.saturation:
            image = tf.image.adjust_saturation(image, 1 + options.saturation * saturation)
        if options.hue:
            image = tf.image.adjust_hue(image, options.hue * hue)
        image = image * 255.0
    if options.contrast:
        image = tf.image.adjust_contrast(image, 1 + options.contrast * contrast)
    if options.brightness:
        image = image + 255.0 * options.brightness * light
    return tf.clip_by_value(image, 0.0, 255.0)
