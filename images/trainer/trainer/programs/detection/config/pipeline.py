"""The pipeline configuration of a detector as one value: model, training, evaluation and input.

Sections and fields have the names of the Object Detection API's pipeline if they exist there.
`pipeline_file.read` makes the value from TOML or from a classic `pipeline.config`; all its paths
are absolute.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

PLACEHOLDER = re.compile(r"\{\{\s*(.*?)\s*\}\}")
DIRECTORY = "."
"""The key in `places` for the configuration's directory."""


def resolved(text: str, places: Mapping[str, Path]) -> str:
    """Returns `text` as an absolute path, with placeholders such as `{{ data }}` replaced.

    Args:
        places: directories by placeholder, and the configuration's directory under `"."`.

    Raises:
        ValueError: the placeholder is unknown.
    """

    def directory(match: re.Match[str]) -> str:
        name = match[1]
        if name not in places or name == DIRECTORY:
            known = ", ".join(f"{{{{ {key} }}}}" for key in sorted(places) if key != DIRECTORY)
            raise ValueError(f"{match[0]} is not a known placeholder; known: {known or 'none'}")
        return str(places[name])

    path = Path(PLACEHOLDER.sub(directory, text))
    return str(places.get(DIRECTORY, Path()) / path)


def listed(value: object) -> object:
    """Returns one text, or a list, as a tuple: TOML and JSON have lists where this model has
    tuples."""
    return (value,) if isinstance(value, str) else value


def path_from(value: str, info: ValidationInfo) -> str:
    """Returns a path of the configuration as an absolute path (see `resolved`)."""
    return resolved(value, info.context or {})


def filled(value: tuple[object, ...]) -> tuple[object, ...]:
    """Returns the value; raises ValueError if it is empty."""
    if not value:
        raise ValueError("must hold at least one")
    return value


NotEmpty = AfterValidator(filled)
"""For lists. With pydantic's min_length a list whose items are all invalid would be reported
twice."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Momentum01 = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
PlaceText = Annotated[str, Field(min_length=1), AfterValidator(path_from)]


class Part(BaseModel):
    """The base of all sections: frozen, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Anchors(Part):
    """One grid of anchors per feature map; scales are sides as fractions of the image."""

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
        """Returns the scale of each feature map, in the order of feature_strides."""
        if self.scales is not None:
            return self.scales
        steps = max(len(self.feature_strides) - 1, 1)
        rise = (self.max_scale - self.min_scale) / steps
        return tuple(self.min_scale + rise * k for k in range(len(self.feature_strides)))


class Matcher(Part):
    """Assigns anchors to ground-truth boxes by intersection over union."""

    matched_threshold: Fraction = Field(
        0.5, description="An anchor with at least this IoU is positive"
    )
    unmatched_threshold: Fraction = Field(
        0.5, description="An anchor with a smaller IoU is background"
    )
    force_match_for_each_row: bool = Field(
        True, description="Every box gets its best anchor, even with a small IoU"
    )

    @model_validator(mode="after")
    def in_order(self) -> Self:
        if self.unmatched_threshold > self.matched_threshold:
            raise ValueError("unmatched_threshold must not be above matched_threshold")
        return self


class BoxCoder(Part):
    """Factors of the four numbers that encode a box."""

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
        3, description="Minimum number of hard negatives in every image, softmax only"
    )
    focal_alpha: Fraction = Field(0.25, description="Weight of positives, focal loss only")
    focal_gamma: NotNegative = Field(2.0, description="Focusing exponent, focal loss only")


class PostProcessing(Part):
    """Turns the scores and boxes of all anchors into detections."""

    score_threshold: Fraction = Field(0.01, description="Detections below this score are dropped")
    iou_threshold: Fraction = Field(
        0.5, description="Of two detections of a class with a larger IoU, the weaker is dropped"
    )
    max_detections_per_class: Count = Field(
        50, description="Maximum detections per class and image"
    )
    max_total_detections: Count = Field(50, description="Maximum detections per image")


class Model(Part):
    """SSD on MobileNet."""

    num_classes: Count = Field(
        description="Number of classes; the label map's ids are 1 to num_classes"
    )
    feature_extractor: Literal["mobilenet_v1", "mobilenet_v2"] = Field(
        "mobilenet_v2", description="The backbone"
    )
    depth_multiplier: Positive = Field(1.0, description="Width of the backbone's layers")
    image_size: Annotated[int, Field(ge=32, le=4096)] = Field(
        300, description="Height and width in pixels to which images are resized"
    )
    batch_norm_momentum: Momentum01 = Field(
        0.97, description="Decay of BatchNorm's averages; 0.99 and more need long runs"
    )
    l2_weight: NotNegative = Field(4e-5, description="Weight decay of all kernels")
    anchors: Anchors = Field(Anchors(), description="Anchor boxes")
    matcher: Matcher = Field(Matcher(), description="Anchors to ground truth")
    box_coder: BoxCoder = Field(BoxCoder(), description="Scales of encoded boxes")
    loss: Loss = Field(Loss(), description="The multibox loss")
    post_processing: PostProcessing = Field(PostProcessing(), description="Detections")


class Averaging(Part):
    """Options of every optimizer."""

    use_moving_average: bool = Field(
        False, description="Keep a moving average of each variable, and score and save the averages"
    )
    moving_average_decay: Momentum01 = Field(0.9999, description="Decay of that average")


class Momentum(Averaging):
    """Gradient descent with momentum."""

    type: Literal["momentum"] = "momentum"
    momentum: Momentum01 = Field(0.9, description="Share of the last update that is kept")


class RmsProp(Averaging):
    """RMSProp, as the classic SSD-MobileNet pipelines use it."""

    type: Literal["rmsprop"] = "rmsprop"
    momentum: Momentum01 = Field(0.9, description="Share of the last update that is kept")
    decay: Momentum01 = Field(0.9, description="Decay of the moving mean of squared gradients")
    epsilon: Positive = Field(1.0, description="Constant added to that mean")


class Adam(Averaging):
    """Adam."""

    type: Literal["adam"] = "adam"
    beta_1: Momentum01 = Field(0.9, description="Decay of the mean gradient")
    beta_2: Momentum01 = Field(0.999, description="Decay of the mean squared gradient")
    epsilon: Positive = Field(1e-7, description="Constant added to its root")


class Rate(Part):
    """A learning rate with an optional warm-up."""

    learning_rate: Positive = Field(description="The rate after the warm-up")
    warmup_steps: CountOrNone = Field(0, description="Steps of linear rise; 0 for none")
    warmup_learning_rate: NotNegative = Field(0.0, description="The rate at step 0 of the rise")


class ConstantRate(Rate):
    """A constant rate."""

    type: Literal["constant"] = "constant"


class ExponentialRate(Rate):
    """rate · decay_factor ^ (step / decay_steps)."""

    type: Literal["exponential"] = "exponential"
    decay_steps: Count = Field(description="Steps in which the rate falls by decay_factor")
    decay_factor: Annotated[float, Field(gt=0, le=1)] = Field(0.95, description="See decay_steps")
    staircase: bool = Field(
        True, description="Whether the rate falls in steps of decay_steps instead of continuously"
    )


class CosineRate(Rate):
    """From learning_rate to 0 along half a cosine."""

    type: Literal["cosine"] = "cosine"
    total_steps: Count | None = Field(
        None, description="Step at which the rate is 0; default: num_steps"
    )


class RateStep(Part):
    """A rate, and the step from which it applies."""

    step: Count
    learning_rate: Positive


class ManualStepRate(Rate):
    """A list of rates, each with the step from which it applies."""

    type: Literal["manual_step"] = "manual_step"
    schedule: Annotated[tuple[RateStep, ...], NotEmpty] = Field(description="Steps and their rates")

    @model_validator(mode="after")
    def rising(self) -> Self:
        steps = [change.step for change in self.schedule]
        if steps != sorted(set(steps)):
            raise ValueError("the steps of the schedule must rise")
        return self


Optimizer = Annotated[Momentum | RmsProp | Adam, Field(discriminator="type")]
LearningRate = Annotated[
    ConstantRate | ExponentialRate | CosineRate | ManualStepRate, Field(discriminator="type")
]


class Crop(Part):
    """Replaces the image by a window of it: smaller windows crop, larger ones pad."""

    probability: Fraction = Field(0.5, description="Share of the images that are changed")
    min_scale: Annotated[float, Field(gt=0, le=4)] = Field(
        0.6, description="Smallest side of the window, as a fraction of the image's"
    )
    max_scale: Annotated[float, Field(gt=0, le=4)] = Field(
        1.0, description="Largest side; above 1, the image shrinks on a grey background"
    )
    max_aspect_change: Annotated[float, Field(ge=1, le=4)] = Field(
        1.25, description="Maximum factor by which width or height is stretched against the other"
    )
    min_visible: Fraction = Field(
        0.5, description="Boxes that keep a smaller share of their area are dropped"
    )

    @model_validator(mode="after")
    def in_order(self) -> Self:
        if self.min_scale > self.max_scale:
            raise ValueError("min_scale must not be above max_scale")
        return self


class Augmentation(Part):
    """Random changes of training images; a change that is absent or 0 is not made."""

    random_horizontal_flip: Fraction = Field(0.0, description="Share of images that are mirrored")
    random_crop: Crop | None = Field(None, description="Crop or pad")
    brightness: Fraction = Field(
        0.0, description="Largest value that is added or subtracted (images are 0…1)"
    )
    contrast: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="Factor between 1 - contrast and 1 + contrast"
    )
    saturation: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="Factor between 1 - saturation and 1 + saturation"
    )
    hue: Annotated[float, Field(ge=0, le=0.5)] = Field(0.0, description="Largest change of the hue")


class TrainConfig(Part):
    """The length, the speed and the start of the training."""

    batch_size: Count = Field(32, description="Images per step of one replica, or of one clone")
    num_steps: Count = Field(
        1200,
        description="Training ends at this global step; default: --default-steps, if given",
    )
    loss_threshold: Positive | None = Field(
        None, description="Training ends as soon as the loss is below this"
    )
    optimizer: Optimizer = Field(Momentum(), description="The optimizer, by its `type`")
    learning_rate: LearningRate = Field(description="The schedule, by its `type`")
    sync_replicas: bool | None = Field(
        None,
        description="true: one update per round, with the gradients of all replicas; as --update",
    )
    replicas_to_aggregate: CountOrNone = Field(
        0, description="Number of gradients that a round waits for; 0: one per replica"
    )
    startup_delay_steps: NotNegative = Field(
        0.0, description="Global step at which all replicas but the chief begin (asynchronous only)"
    )
    gradient_clipping_by_norm: NotNegative = Field(0.0, description="0 for no clipping")
    fine_tune_checkpoint: PlaceText | None = Field(None, description="Checkpoint to start from")
    fine_tune_checkpoint_type: Literal["detection", "classification"] = Field(
        "detection", description="Whether to load all variables that fit, or only the backbone's"
    )
    max_number_of_boxes: Count = Field(
        100, description="The number of boxes to which each image's are padded"
    )
    augmentation: Augmentation = Field(
        Augmentation(), description="Random changes of training images"
    )
    seed: Annotated[int, Field(ge=0)] = Field(
        1, description="Seed of the weights and of the order of images"
    )


class InputReader(Part):
    """TFRecords of tf.train.Example."""

    input_path: Annotated[tuple[PlaceText, ...], BeforeValidator(listed), NotEmpty] = Field(
        description="Files, or patterns such as `train-*.tfrecord`"
    )
    label_map_path: PlaceText = Field(description="The label map, a .pbtxt")


class EvalConfig(Part):
    """How checkpoints are scored."""

    batch_size: Count = Field(32, description="Images per batch")
    num_examples: CountOrNone = Field(0, description="Maximum number of images; 0: all")
    num_visualizations: CountOrNone = Field(
        12, description="Number of images that are drawn with their detections"
    )
    min_score_threshold: Fraction = Field(
        0.4, description="Only detections with a higher score are drawn"
    )
    use_moving_averages: bool | None = Field(
        None,
        description="Whether to score and save the averages; default: if the optimizer keeps them",
    )


class Pipeline(Part):
    """The whole configuration."""

    model: Model
    train_config: TrainConfig
    train_input_reader: InputReader
    eval_input_reader: InputReader | None
    """None only for a configuration in parts without this part; then there is nothing to score."""
    eval_config: EvalConfig = EvalConfig()

    @field_validator("eval_config")
    @classmethod
    def averages_are_kept(cls, value: EvalConfig, info: ValidationInfo) -> EvalConfig:
        train = info.data.get("train_config")
        if value.use_moving_averages and train and not train.optimizer.use_moving_average:
            raise ValueError(
                "use_moving_averages is true, but the optimizer keeps none: set"
                " train_config.optimizer.use_moving_average = true, too"
            )
        return value

    @property
    def averaged(self) -> bool:
        """Returns whether the variables' moving averages are scored and saved instead of the
        variables."""
        chosen = self.eval_config.use_moving_averages
        kept = self.train_config.optimizer.use_moving_average
        return kept if chosen is None else chosen
