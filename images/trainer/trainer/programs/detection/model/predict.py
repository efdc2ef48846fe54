"""From predictions to detections: decode every anchor, and keep the best of those that overlap."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from trainer.programs.detection.config.model_fields import PostProcessing
from trainer.programs.detection.model import box_coding
from trainer.programs.detection.model.loss import CODE, SOFTMAX, MultiboxLoss


class Detections(NamedTuple):
    """Of each image the D best, by falling score; after its `count` all is 0."""

    boxes: tf.Tensor
    """[B, D, 4] float32: ymin, xmin, ymax, xmax, within 0…1."""
    scores: tf.Tensor
    """[B, D] float32, 0…1."""
    classes: tf.Tensor
    """[B, D] int32, the label map's ids, from 1; 0 if there is no detection."""
    count: tf.Tensor
    """[B] int32."""


def detect(predictions: tf.Tensor, loss: MultiboxLoss, options: PostProcessing) -> Detections:
    """Detections in predictions [B, A, 4 + 1 + C] of a network trained with `loss`."""
    anchors = tf.constant(loss.anchors, tf.float32)
    boxes = box_coding.decode(predictions[..., :CODE], anchors, loss.factors)
    kept = tf.image.combined_non_max_suppression(
        boxes[:, :, tf.newaxis],
        chances(predictions[..., CODE:], loss.options.classification_loss),
        max_output_size_per_class=options.max_detections_per_class,
        max_total_size=options.max_total_detections,
        iou_threshold=options.iou_threshold,
        score_threshold=options.score_threshold,
    )
    is_detection = tf.sequence_mask(kept.valid_detections, options.max_total_detections)
    classes = tf.where(is_detection, tf.cast(kept.nmsed_classes, tf.int32) + 1, 0)
    return Detections(kept.nmsed_boxes, kept.nmsed_scores, classes, kept.valid_detections)


def chances(logits: tf.Tensor, classification: str) -> tf.Tensor:
    """[B, A, C], without the background, of logits [B, A, 1 + C]."""
    if classification == SOFTMAX:
        return tf.nn.softmax(logits)[..., 1:]
    return tf.sigmoid(logits[..., 1:])
