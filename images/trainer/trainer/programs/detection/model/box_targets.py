"""Computes the network's targets: matches of anchors and boxes, and encoded boxes.

A code [ty, tx, th, tw] is the offset of a box from an anchor: the shift of the centre in anchor
heights and widths, and the logarithms of the ratios of heights and widths, all multiplied by the
box coder's factors so that they are of order one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from trainer.programs.detection.config.pipeline import BoxCoder, Matcher

SMALLEST = 1e-6
LARGEST_GROWTH = 4.0
"""A predicted box is at most e⁴ times as high or wide as its anchor, so that decoding never gives
infinity."""


def factors(coder: BoxCoder) -> tuple[float, float, float, float]:
    """Return the factors by which codes of y, x, height and width are multiplied."""
    return coder.y_scale, coder.x_scale, coder.height_scale, coder.width_scale


def encode(boxes: tf.Tensor, anchors: tf.Tensor, scaled_by: Sequence[float]) -> tf.Tensor:
    """Returns the codes of `boxes` relative to `anchors`, both [..., 4]; the same shape."""
    centre, size = centre_and_size(boxes)
    anchor_centre, anchor_size = centre_and_size(anchors)
    shift = (centre - anchor_centre) / anchor_size
    growth = tf.math.log(tf.maximum(size, SMALLEST) / anchor_size)
    return tf.concat([shift, growth], -1) * tf.constant(scaled_by, tf.float32)


def decode(codes: tf.Tensor, anchors: tf.Tensor, scaled_by: Sequence[float]) -> tf.Tensor:
    """Returns the boxes of `codes`, the inverse of encode; both [..., 4]. Boxes may extend beyond
    the image."""
    codes = codes / tf.constant(scaled_by, tf.float32)
    anchor_centre, anchor_size = centre_and_size(anchors)
    centre = codes[..., :2] * anchor_size + anchor_centre
    size = tf.exp(tf.minimum(codes[..., 2:], LARGEST_GROWTH)) * anchor_size
    return tf.concat([centre - size / 2, centre + size / 2], -1)


def centre_and_size(boxes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns ([..., y x], [..., height width]) of [ymin, xmin, ymax, xmax]."""
    low, high = boxes[..., :2], boxes[..., 2:]
    return (low + high) / 2, high - low


@dataclass(frozen=True)
class Matches:
    """The match of each anchor of each image, all [B, A]."""

    box: tf.Tensor
    """int32: index of the matched box; 0 if there is none."""
    matched: tf.Tensor
    """bool: whether the anchor is matched to a box."""
    background: tf.Tensor
    """bool: whether the anchor is background. An anchor that is neither `matched` nor `background`
    is ignored."""


def overlaps(boxes: tf.Tensor, anchors: tf.Tensor) -> tf.Tensor:
    """Returns the intersection over union of each box [B, N, 4] with each anchor [A, 4]: [B, N, A]
    in 0…1."""
    boxes, anchors = boxes[:, :, tf.newaxis], anchors[tf.newaxis, tf.newaxis]
    low = tf.maximum(boxes[..., :2], anchors[..., :2])
    high = tf.minimum(boxes[..., 2:], anchors[..., 2:])
    common = tf.reduce_prod(tf.maximum(high - low, 0.0), -1)
    return tf.math.divide_no_nan(common, area(boxes) + area(anchors) - common)


def area(boxes: tf.Tensor) -> tf.Tensor:
    """Returns the areas [...] of boxes [..., 4]; 0 for empty boxes."""
    return tf.reduce_prod(tf.maximum(boxes[..., 2:] - boxes[..., :2], 0.0), -1)


def match(boxes: tf.Tensor, present: tf.Tensor, anchors: tf.Tensor, options: Matcher) -> Matches:
    """Match anchors [A, 4] to boxes [B, N, 4]; only boxes with `present` [B, N] (bool) count.

    An anchor matches the box with which it has the largest overlap, if that reaches the matched
    threshold. With `force_match_for_each_row` each box also gets the anchor with the largest
    overlap, even if the overlap is small. If two boxes need the same anchor, the box with the
    larger overlap gets it.
    """
    overlap = tf.where(present[..., tf.newaxis], overlaps(boxes, anchors), 0.0)
    box = tf.argmax(overlap, 1, tf.int32)
    best = tf.reduce_max(overlap, 1)
    matched = (best >= options.matched_threshold) & (best > 0.0)
    if options.force_match_for_each_row:
        wanted = tf.one_hot(tf.argmax(overlap, 2), anchors.shape[0], True, False, dtype=tf.bool)
        wanted = wanted & (overlap > 0.0)
        forced = tf.reduce_any(wanted, 1)
        claim = tf.argmax(tf.where(wanted, overlap, -1.0), 1, tf.int32)
        box = tf.where(forced, claim, box)
        matched = matched | forced
    background = (best < options.unmatched_threshold) & ~matched
    return Matches(tf.where(matched, box, 0), matched, background)
