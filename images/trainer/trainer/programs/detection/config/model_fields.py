"""The `model` section of a pipeline configuration: SSD on MobileNet."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from trainer.programs.detection.config.field_types import (
    Count,
    CountOrNone,
    Fraction,
    Momentum01,
    NotEmpty,
    NotNegative,
    Part,
    Positive,
)


class Anchors(Part):
    """One grid of anchors for each feature map; scales are sides as a fraction of the image."""

    feature_strides: tuple[Literal[8, 16, 32, 64, 128, 256, 512], ...] = Field(
        (16, 32, 64),
        min_length=1,
        description="Pixels per cell of each feature map, fine to coarse",
    )
    min_scale: Fraction = Field(0.2, description="Scale on the finest feature map")
    max_scale: Fraction = Field(0.95, description="Scale on the coarsest; linear in between")
    scales: tuple[Fraction, ...] | None = Field(
        None, description="Instead of min_scale and max_scale: the scale on each feature map"
    )
    aspect_ratios: Annotated[tuple[Positive, ...], NotEmpty] = Field(
        (1.0, 2.0, 0.5), description="Width / height of the anchors of every cell"
    )
    interpolated_scale_aspect_ratio: NotNegative = Field(
        1.0,
        description="Ratio of one more anchor between this scale and the next; 0 leaves it out",
    )

    @model_validator(mode="after")
    def hang_together(self) -> Self:
        strides = self.feature_strides
        if any(fine >= coarse for fine, coarse in itertools.pairwise(strides)):
            raise ValueError("feature_strides must rise from fine to coarse, as in [8, 16, 32]")
        if self.scales is not None and len(self.scales) != len(strides):
            raise ValueError(
                f"{len(self.scales)} scales for {len(strides)} feature_strides: one for each"
            )
        if self.scales is not None and min(self.scales) <= 0:
            raise ValueError("scales must be above 0")
        if self.min_scale <= 0 or self.min_scale > self.max_scale:
            raise ValueError("min_scale must be above 0 and not above max_scale")
        return self

    @property
    def layer_scales(self) -> tuple[float, ...]:
        """The scale of each feature map, in the order of feature_strides."""
        if self.scales is not None:
            return self.scales
        steps = max(len(self.feature_strides) - 1, 1)
        rise = (self.max_scale - self.min_scale) / steps
        return tuple(self.min_scale + rise * k for k in range(len(self.feature_strides)))


class Matcher(Part):
    """Which anchors stand for which ground-truth box, by intersection over union."""

    matched_threshold: Fraction = Field(0.5, description="An anchor is positive from this IoU on")
    unmatched_threshold: Fraction = Field(0.5, description="An anchor is background below this IoU")
    force_match_for_each_row: bool = Field(
        True, description="Every box gets its best anchor, whatever their IoU"
    )

    @model_validator(mode="after")
    def in_order(self) -> Self:
        if self.unmatched_threshold > self.matched_threshold:
            raise ValueError("unmatched_threshold must not be above matched_threshold")
        return self


class BoxCoder(Part):
    """What the four numbers of an encoded box are multiplied by."""

    y_scale: Positive = Field(10.0, description="Centre, vertical")
    x_scale: Positive = Field(10.0, description="Centre, horizontal")
    height_scale: Positive = Field(5.0, description="Logarithm of the height")
    width_scale: Positive = Field(5.0, description="Logarithm of the width")


class Loss(Part):
    """Multibox loss: classification with hard negatives, and smooth L1 on encoded boxes."""

    classification_loss: Literal["softmax", "focal"] = Field(
        "softmax",
        description="Softmax with hard negatives, or focal: sigmoids of all anchors",
    )
    classification_weight: NotNegative = Field(1.0, description="Weight of the classification loss")
    localization_weight: NotNegative = Field(1.0, description="Weight of the localization loss")
    max_negatives_per_positive: Positive = Field(
        3.0, description="Hard negatives kept for each positive anchor, softmax only"
    )
    min_negatives_per_image: CountOrNone = Field(
        3, description="Hard negatives kept in every image, softmax only"
    )
    focal_alpha: Fraction = Field(0.25, description="Weight of positives, focal loss only")
    focal_gamma: NotNegative = Field(2.0, description="Focusing exponent, focal loss only")


class PostProcessing(Part):
    """From scores and boxes of all anchors to detections."""

    score_threshold: Fraction = Field(0.01, description="Detections below this score are dropped")
    iou_threshold: Fraction = Field(
        0.5, description="The weaker of two of a class with a larger IoU is dropped"
    )
    max_detections_per_class: Count = Field(50, description="Detections of one class per image")
    max_total_detections: Count = Field(50, description="Detections per image")


class Model(Part):
    """SSD on MobileNet."""

    num_classes: Count = Field(description="Classes; the label map's ids are 1 to num_classes")
    feature_extractor: Literal["mobilenet_v1", "mobilenet_v2"] = Field(
        "mobilenet_v2", description="The backbone"
    )
    depth_multiplier: Positive = Field(1.0, description="Width of the backbone's layers")
    image_size: Annotated[int, Field(ge=32, le=4096)] = Field(
        300, description="Height and width in pixels that images are resized to"
    )
    batch_norm_momentum: Momentum01 = Field(
        0.97, description="Of the moving averages; 0.99 and more need long runs"
    )
    l2_weight: NotNegative = Field(4e-5, description="Weight decay of all kernels")
    anchors: Anchors = Field(Anchors(), description="Anchor boxes")
    matcher: Matcher = Field(Matcher(), description="Anchors to ground truth")
    box_coder: BoxCoder = Field(BoxCoder(), description="Scales of encoded boxes")
    loss: Loss = Field(Loss(), description="The multibox loss")
    post_processing: PostProcessing = Field(PostProcessing(), description="Detections")
