"""What the network predicts for a box: its offset from an anchor, scaled to be of order one.

A code is [ty, tx, th, tw]: the centre's shift in anchor heights and widths, and the logarithm of
the growth of height and width, times the box coder's factors.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from trainer.programs.detection.config.model_fields import BoxCoder

SMALLEST = 1e-6
LARGEST_GROWTH = 4.0
"""A predicted box is at most e⁴ times as high or wide as its anchor: no infinity in decoding."""


def factors(coder: BoxCoder) -> tuple[float, float, float, float]:
    """What codes of y, x, height and width are multiplied by."""
    return coder.y_scale, coder.x_scale, coder.height_scale, coder.width_scale


def encode(boxes: tf.Tensor, anchors: tf.Tensor, scaled_by: Sequence[float]) -> tf.Tensor:
    """Codes of `boxes` seen from `anchors`, both [..., 4]; the same shape."""
    centre, size = centre_and_size(boxes)
    anchor_centre, anchor_size = centre_and_size(anchors)
    shift = (centre - anchor_centre) / anchor_size
    growth = tf.math.log(tf.maximum(size, SMALLEST) / anchor_size)
    return tf.concat([shift, growth], -1) * tf.constant(scaled_by, tf.float32)


def decode(codes: tf.Tensor, anchors: tf.Tensor, scaled_by: Sequence[float]) -> tf.Tensor:
    """Boxes of `codes`, the inverse of encode; both [..., 4]. Boxes may reach over the image."""
    codes = codes / tf.constant(scaled_by, tf.float32)
    anchor_centre, anchor_size = centre_and_size(anchors)
    centre = codes[..., :2] * anchor_size + anchor_centre
    size = tf.exp(tf.minimum(codes[..., 2:], LARGEST_GROWTH)) * anchor_size
    return tf.concat([centre - size / 2, centre + size / 2], -1)


def centre_and_size(boxes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """([..., y x], [..., height width]) of [ymin, xmin, ymax, xmax]."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return (low + high) / 2, high - low
