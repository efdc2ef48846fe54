"""SSD: feature maps of a MobileNet, and a few additional maps, predict boxes and classes.

Predictions become detections: every anchor is decoded, and of overlapping boxes only the best is
kept.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from trainer.programs.detection.config.pipeline import Model, Pipeline, PostProcessing
from trainer.programs.detection.data.label_map import LabelMap
from trainer.programs.detection.model import box_targets
from trainer.programs.detection.model.anchors import AnchorMap, anchor_maps
from trainer.programs.detection.model.loss import CODE, SOFTMAX, MultiboxLoss
from trainer.programs.training.export import SavedModel

keras = tf.keras

LAYERS = {
    "mobilenet_v1": {8: "conv_pw_5_relu", 16: "conv_pw_11_relu", 32: "conv_pw_13_relu"},
    "mobilenet_v2": {8: "block_6_expand_relu", 16: "block_13_expand_relu", 32: "out_relu"},
}
"""Backbone and stride to the last layer with that stride; layers after the last of these are not
used."""
EXTRA, PREDICTIONS = "extra_", "predictions_"
EXTRA_CHANNELS, LEAST_CHANNELS = 256, 32
FIRST_CHANCE = 0.01
"""The initial probability of each class: all but a few anchors are background."""


@dataclass(frozen=True)
class Detector:
    """The network, from images [B, S, S, 3] in 0…255 to predictions [B, A, 4 + 1 + C].

    Graph mode, `fit` and eager code use the same network and the same loss.
    """

    network: keras.Model
    maps: tuple[AnchorMap, ...]
    loss: MultiboxLoss


def build(options: Model, seed: int) -> Detector:
    """Return the detector of a configuration, with random weights that depend on `seed`."""
    keras.utils.set_random_seed(seed)
    others = {variable.name for variable in tf.compat.v1.global_variables()}
    image = keras.Input((options.image_size, options.image_size, 3), name="image")
    scaled = keras.layers.Rescaling(1 / 127.5, offset=-1.0, name="scaled")(image)
    with as_when_scoring():
        features = feature_maps(backbone(options, scaled), options)
    maps = anchor_maps(options.anchors, [tuple(feature.shape[1:3]) for feature in features])
    predictions = [
        head(feature, len(anchors.shapes), options, f"{PREDICTIONS}{stride}")
        for feature, anchors, stride in zip(
            features, maps, options.anchors.feature_strides, strict=True
        )
    ]
    output = keras.layers.Concatenate(1, name="predictions")(predictions)
    network = keras.Model(image, output, name=f"ssd_{options.feature_extractor}")
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.momentum = options.batch_norm_momentum
    forget_all_but(others | {weight.name for weight in network.weights})
    boxes = [box for anchors in maps for box in anchors.boxes()]
    return Detector(network, maps, MultiboxLoss(boxes, options))


@contextlib.contextmanager
def as_when_scoring() -> Iterator[None]:
    """Build layers in graph mode without what only training needs, in the block; in eager mode
    nothing changes.

    Keras's applications do not pass `training` on, and each BatchNormalization would build both
    ways behind a tf.cond, which takes 1 s for a MobileNetV2. Calls of the finished network say
    themselves whether they train.
    """
    if tf.executing_eagerly():
        yield
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`tf.keras.backend.learning_phase_scope` is deprecated")
        with keras.backend.learning_phase_scope(0):
            yield


def backbone(options: Model, scaled: tf.Tensor) -> keras.Model:
    """Return the Keras application without its weights and its classifier."""
    make = {
        "mobilenet_v1": keras.applications.MobileNet,
        "mobilenet_v2": keras.applications.MobileNetV2,
    }[options.feature_extractor]
    return make(
        input_tensor=scaled, alpha=options.depth_multiplier, include_top=False, weights=None
    )


def feature_maps(body: keras.Model, options: Model) -> list[tf.Tensor]:
    """Return a feature map for each stride, from fine to coarse.

    If the backbone has no map for a stride, the previous map is halved until it fits.
    """
    layers = LAYERS[options.feature_extractor]
    maps: list[tf.Tensor] = []
    feature, at = body.output, max(layers)
    for stride in options.anchors.feature_strides:
        if stride in layers:
            feature, at = body.get_layer(layers[stride]).output, stride
        while at < stride:
            at *= 2
            feature = halved(feature, options.depth_multiplier, f"{EXTRA}{at}")
        maps.append(feature)
    return maps


def halved(feature: tf.Tensor, depth_multiplier: float, name: str) -> tf.Tensor:
    """Return a map with half the rows and columns, by a narrow 1x1 and a 3x3 convolution."""
    channels = max(LEAST_CHANNELS, round(EXTRA_CHANNELS * depth_multiplier))
    for part, filters, size, strides in (("in", channels // 2, 1, 1), ("out", channels, 3, 2)):
        feature = keras.layers.Conv2D(
            filters, size, strides, padding="same", use_bias=False, name=f"{name}_{part}"
        )(feature)
        feature = keras.layers.BatchNormalization(name=f"{name}_{part}_bn")(feature)
        feature = keras.layers.ReLU(6.0, name=f"{name}_{part}_relu")(feature)
    return feature


def head(feature: tf.Tensor, shapes: int, options: Model, name: str) -> tf.Tensor:
    """Returns the predictions [B, cells * shapes, 4 + 1 + C] of one feature map, by a 3x3
    convolution."""
    width = CODE + 1 + options.num_classes
    bias = 0.0
    if options.loss.classification_loss != SOFTMAX:
        bias = -math.log((1.0 - FIRST_CHANCE) / FIRST_CHANCE)
    predicted = keras.layers.Conv2D(
        shapes * width,
        3,
        padding="same",
        kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.03),
        bias_initializer=keras.initializers.Constant(
            ([0.0] * (CODE + 1) + [bias] * options.num_classes) * shapes
        ),
        name=name,
    )(feature)
    return keras.layers.Reshape((-1, width), name=f"{name}_by_anchor")(predicted)


def forget_all_but(names: set[str]) -> None:
    """Keep only the variables with these names in the graph's collections."""
    graph = tf.compat.v1.get_default_graph()
    for collection in (
        tf.compat.v1.GraphKeys.GLOBAL_VARIABLES,
        tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES,
    ):
        kept = graph.get_collection_ref(collection)
        kept[:] = [variable for variable in kept if variable.name in names]


def is_of_backbone(name: str) -> bool:
    """Returns whether a variable of this name belongs to the backbone."""
    return not name.startswith((EXTRA, PREDICTIONS))


def weight_decay(network: keras.Model, weight: float) -> tf.Tensor:
    """Returns `weight` times half the sum of squares of all kernels, without biases and
    BatchNorm."""
    kernels = [w for w in network.trainable_weights if "kernel" in w.name]
    return weight * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])


class Detections(NamedTuple):
    """The D best detections of each image, by descending score; entries from `count` on are 0."""

    boxes: tf.Tensor
    """[B, D, 4] float32: ymin, xmin, ymax, xmax, within 0…1."""
    scores: tf.Tensor
    """[B, D] float32, 0…1."""
    classes: tf.Tensor
    """[B, D] int32, the label map's ids, from 1; 0 if there is no detection."""
    count: tf.Tensor
    """[B] int32."""


def detect(predictions: tf.Tensor, loss: MultiboxLoss, options: PostProcessing) -> Detections:
    """Returns the detections in predictions [B, A, 4 + 1 + C] of a network trained with `loss`."""
    anchors = tf.constant(loss.anchors, tf.float32)
    boxes = box_targets.decode(predictions[..., :CODE], anchors, loss.factors)
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
    """Return probabilities [B, A, C], without the background, of logits [B, A, 1 + C]."""
    if classification == SOFTMAX:
        return tf.nn.softmax(logits)[..., 1:]
    return tf.sigmoid(logits[..., 1:])


def export(detector: Detector, pipeline: Pipeline, labels: LabelMap, target: Path) -> None:
    """Write a SavedModel with its label map, which replaces the one at `target`.

    It takes images uint8 [n, height, width, 3] of any size, and returns `boxes` [n, D, 4] (ymin,
    xmin, ymax, xmax in fractions of the image), `classes` [n, D] (ids of the label map, 0 for
    none), `scores` [n, D] and `count` [n].
    """
    side = (pipeline.model.image_size,) * 2

    def serve(images: tf.Tensor) -> dict[str, tf.Tensor]:
        resized = tf.image.resize(images, side, antialias=True)
        predictions = detector.network(resized, training=False)
        return detect(predictions, detector.loss, pipeline.model.post_processing)._asdict()

    signature = tf.TensorSpec((None, None, None, 3), tf.uint8, "images")

    def also(directory: Path) -> None:
        (directory / "label_map.pbtxt").write_text(labels.to_text())

    SavedModel(target, detector.network.weights, serve, signature, also).write()
