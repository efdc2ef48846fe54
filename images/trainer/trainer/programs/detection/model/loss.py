"""The multibox loss: the location of boxes (smooth L1), and their classes.

Truth is [B, N, 5] float32: a box as [ymin, xmin, ymax, xmax], and its class from 1; class 0 pads
images with fewer boxes. Predictions are [B, A, 4 + 1 + C]: a code (box_coding), and logits of
background and the C classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from trainer.programs.detection.config.pipeline import Model
from trainer.programs.detection.model import box_targets
from trainer.programs.detection.model.anchors import Box
from trainer.programs.detection.model.box_targets import Matches, match

CODE = 4
SOFTMAX, FOCAL = "softmax", "focal"


@dataclass(frozen=True)
class Parts:
    """The losses of each image, [B]; `total` is the weighted sum of the others."""

    total: tf.Tensor
    localization: tf.Tensor
    classification: tf.Tensor


class MultiboxLoss:
    """Called with (truth, predictions); returns the loss of each image, [B], as tf_keras expects
    it.

    The loss of an image is divided by the number of its matched anchors. So the mean over images
    does not depend on how images are distributed to clones, workers and batches.
    """

    __name__ = "multibox_loss"

    def __init__(self, anchors: Sequence[Box], model: Model) -> None:
        self.anchors = tuple(anchors)
        self.matcher = model.matcher
        self.factors = box_targets.factors(model.box_coder)
        self.options = model.loss

    def __call__(self, truth: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
        return self.parts(truth, predictions).total

    def parts(self, truth: tf.Tensor, predictions: tf.Tensor) -> Parts:
        options = self.options
        anchors = tf.constant(self.anchors, tf.float32)
        boxes, classes = truth[..., :CODE], tf.cast(truth[..., CODE], tf.int32)
        matches = match(boxes, classes > 0, anchors, self.matcher)
        positives = tf.reduce_sum(tf.cast(matches.matched, tf.float32), 1)
        count = tf.maximum(positives, 1.0)

        codes = box_targets.encode(
            tf.gather(boxes, matches.box, batch_dims=1), anchors, self.factors
        )
        misses = smooth_l1(codes - predictions[..., :CODE])
        localization = tf.reduce_sum(tf.where(matches.matched, misses, 0.0), 1) / count

        wanted = tf.where(matches.matched, tf.gather(classes, matches.box, batch_dims=1), 0)
        losses = self.classification(wanted, predictions[..., CODE:])
        counted = self.counted(losses, matches, positives)
        classification = tf.reduce_sum(tf.where(counted, losses, 0.0), 1) / count
        total = (
            options.localization_weight * localization
            + options.classification_weight * classification
        )
        return Parts(total, localization, classification)

    def classification(self, wanted: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns the classification loss of each anchor, [B, A]; `wanted` [B, A] is its class, 0
        for background.

        Focal loss has a sigmoid for each class, and omits the background's logit.
        """
        if self.options.classification_loss == SOFTMAX:
            return tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, logits)
        logits = logits[..., 1:]
        target = tf.one_hot(wanted - 1, logits.shape[-1])
        chance = tf.sigmoid(logits)
        missed = target * (1.0 - chance) + (1.0 - target) * chance
        alpha = self.options.focal_alpha
        weight = target * alpha + (1.0 - target) * (1.0 - alpha)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(target, logits)
        return tf.reduce_sum(weight * missed**self.options.focal_gamma * losses, -1)

    def counted(self, losses: tf.Tensor, found: Matches, positives: tf.Tensor) -> tf.Tensor:
        """Returns bool [B, A]: matched anchors and the hardest background anchors; all anchors for
        focal loss."""
        if self.options.classification_loss == FOCAL:
            return found.matched | found.background
        least = float(self.options.min_negatives_per_image)
        kept = tf.maximum(positives * self.options.max_negatives_per_positive, least)
        return found.matched | hardest(losses, found.background, kept)


def truth(boxes: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    """Returns [B, N, 5] from boxes [B, N, 4] and classes [B, N], which are 0 for padding."""
    return tf.concat([boxes, tf.cast(classes, tf.float32)[..., tf.newaxis]], -1)


def smooth_l1(difference: tf.Tensor) -> tf.Tensor:
    """Returns Huber's loss with delta 1, summed over the last axis."""
    size = tf.abs(difference)
    return tf.reduce_sum(tf.where(size < 1.0, 0.5 * size**2, size - 0.5), -1)


def hardest(losses: tf.Tensor, candidates: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """Returns bool [B, A]: the `kept` [B] candidates [B, A] of each image with the largest
    losses."""
    ranked = tf.where(candidates, tf.stop_gradient(losses), -1.0)
    order = tf.argsort(ranked, 1, direction="DESCENDING")
    rank = tf.argsort(order, 1)
    return candidates & (tf.cast(rank, tf.float32) < kept[:, tf.newaxis])
