"""A record to an image and its boxes, in TensorFlow ops."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from trainer.programs.detection.data import examples


class Example(NamedTuple):
    """One record, decoded: image uint8 [h, w, 3], and k boxes."""

    image: tf.Tensor
    boxes: tf.Tensor
    classes: tf.Tensor
    difficult: tf.Tensor
    crowd: tf.Tensor
    name: tf.Tensor


def decoded(record: tf.Tensor, most: int) -> Example:
    """The image and boxes of a serialised tf.train.Example.

    An image of more than `most` pixels a side is shrunk to them: what comes later samples points.
    """
    variable = {
        **{key: tf.io.VarLenFeature(tf.float32) for key in examples.SIDES},
        **{
            key: tf.io.VarLenFeature(tf.int64)
            for key in (examples.LABEL, examples.DIFFICULT, examples.CROWD)
        },
    }
    single_ones = {
        examples.ENCODED: tf.io.FixedLenFeature([], tf.string),
        examples.SOURCE_ID: tf.io.FixedLenFeature([], tf.string, ""),
        examples.FILENAME: tf.io.FixedLenFeature([], tf.string, ""),
    }
    found = tf.io.parse_single_example(record, {**variable, **single_ones})
    column = {key: found[key].values for key in variable}
    image = tf.io.decode_image(found[examples.ENCODED], channels=3, expand_animations=False)
    image = tf.ensure_shape(image, (None, None, 3))
    sides = tf.minimum(tf.shape(image)[:2], most)
    image = tf.cond(
        tf.reduce_all(tf.equal(sides, tf.shape(image)[:2])),
        lambda: image,
        lambda: to_octets(tf.image.resize(image, sides, antialias=True)),
    )
    boxes = tf.clip_by_value(tf.stack([column[key] for key in examples.SIDES], 1), 0.0, 1.0)
    source = found[examples.SOURCE_ID]
    return Example(
        image,
        boxes,
        tf.cast(column[examples.LABEL], tf.int32),
        flags(column[examples.DIFFICULT], tf.shape(boxes)[0]),
        flags(column[examples.CROWD], tf.shape(boxes)[0]),
        tf.where(tf.strings.length(source) > 0, source, found[examples.FILENAME]),
    )


def to_octets(image: tf.Tensor) -> tf.Tensor:
    """Float pixels in 0…255 as uint8, rounded."""
    return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)


def flags(values: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """bool [count]; all False if the record does not have the feature."""
    # Under a graph of compat.v1 `==` would compare the tensors as objects.
    there = tf.equal(tf.shape(values)[0], count)
    return tf.cond(there, lambda: values > 0, lambda: tf.zeros([count], tf.bool))


def single(example: Example) -> Example:
    """Without its crowds."""
    kept = ~example.crowd
    columns = (example.boxes, example.classes, example.difficult, example.crowd)
    return Example(
        example.image, *(tf.boolean_mask(column, kept) for column in columns), example.name
    )
