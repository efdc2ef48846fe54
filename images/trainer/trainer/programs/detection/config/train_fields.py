"""The `train_config` section of a pipeline configuration."""

from __future__ import annotations

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
    PlaceText,
    Positive,
)


class Averaging(Part):
    """What every optimizer can do besides."""

    use_moving_average: bool = Field(
        False, description="Keep a moving average of each variable, and score and save those"
    )
    moving_average_decay: Momentum01 = Field(0.9999, description="Of that average")


class Momentum(Averaging):
    """Gradient descent with momentum."""

    type: Literal["momentum"] = "momentum"
    momentum: Momentum01 = Field(0.9, description="Share of the last update that is kept")


class RmsProp(Averaging):
    """RMSProp, as the classic SSD-MobileNet pipelines use it."""

    type: Literal["rmsprop"] = "rmsprop"
    momentum: Momentum01 = Field(0.9, description="Share of the last update that is kept")
    decay: Momentum01 = Field(0.9, description="Of the moving mean of squared gradients")
    epsilon: Positive = Field(1.0, description="Added to that mean")


class Adam(Averaging):
    """Adam."""

    type: Literal["adam"] = "adam"
    beta_1: Momentum01 = Field(0.9, description="Of the mean gradient")
    beta_2: Momentum01 = Field(0.999, description="Of the mean squared gradient")
    epsilon: Positive = Field(1e-7, description="Added to its root")


class Rate(Part):
    """A learning rate that may rise at the start."""

    learning_rate: Positive = Field(description="The rate after the warm-up")
    warmup_steps: CountOrNone = Field(0, description="Steps of linear rise; 0 for none")
    warmup_learning_rate: NotNegative = Field(0.0, description="The rate at step 0 of the rise")


class ConstantRate(Rate):
    """The same rate throughout."""

    type: Literal["constant"] = "constant"


class ExponentialRate(Rate):
    """rate · decay_factor ^ (step / decay_steps)."""

    type: Literal["exponential"] = "exponential"
    decay_steps: Count = Field(description="Steps in which the rate falls by decay_factor")
    decay_factor: Annotated[float, Field(gt=0, le=1)] = Field(0.95, description="See decay_steps")
    staircase: bool = Field(True, description="In whole steps of decay_steps")


class CosineRate(Rate):
    """From learning_rate to 0 along half a cosine."""

    type: Literal["cosine"] = "cosine"
    total_steps: Count | None = Field(None, description="Step of rate 0; num_steps where absent")


class RateStep(Part):
    """From this step on, this rate."""

    step: Count
    learning_rate: Positive


class ManualStepRate(Rate):
    """Rates by hand."""

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
    """Look at a window of the image instead of all of it: smaller ones crop, larger ones pad."""

    probability: Fraction = Field(0.5, description="Share of the images it is done to")
    min_scale: Annotated[float, Field(gt=0, le=4)] = Field(
        0.6, description="Least side of the window, as a fraction of the image's"
    )
    max_scale: Annotated[float, Field(gt=0, le=4)] = Field(
        1.0, description="Greatest side; above 1 the image shrinks on a grey ground"
    )
    max_aspect_change: Annotated[float, Field(ge=1, le=4)] = Field(
        1.25, description="Width may be stretched against height by this factor, either way"
    )
    min_visible: Fraction = Field(
        0.5, description="Boxes of which a smaller share of the area is left are dropped"
    )

    @model_validator(mode="after")
    def in_order(self) -> Self:
        if self.min_scale > self.max_scale:
            raise ValueError("min_scale must not be above max_scale")
        return self


class Augmentation(Part):
    """What is done at random to training images; absent or 0 means it is left out."""

    random_horizontal_flip: Fraction = Field(0.0, description="Share of images mirrored")
    random_crop: Crop | None = Field(None, description="Crop or pad")
    brightness: Fraction = Field(0.0, description="Added, at most, either way (images are 0…1)")
    contrast: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="Factor between 1 - contrast and 1 + contrast"
    )
    saturation: Annotated[float, Field(ge=0, lt=1)] = Field(0.0, description="Factor, likewise")
    hue: Annotated[float, Field(ge=0, le=0.5)] = Field(0.0, description="Turned, at most")


class TrainConfig(Part):
    """How long, how fast, and from where."""

    batch_size: Count = Field(32, description="Images per step of one replica (of one clone)")
    num_steps: Count = Field(
        1200,
        description="Training ends at this global step; without it at --default-steps, if given",
    )
    loss_threshold: Positive | None = Field(
        None, description="Training ends as soon as the loss is below this"
    )
    optimizer: Optimizer = Field(Momentum(), description="The optimizer, by its `type`")
    learning_rate: LearningRate = Field(description="The schedule, by its `type`")
    sync_replicas: bool | None = Field(
        None, description="true: one update for a round of all replicas' gradients; as --update"
    )
    replicas_to_aggregate: CountOrNone = Field(
        0, description="Gradients that a round waits for; 0: one from each replica"
    )
    startup_delay_steps: NotNegative = Field(
        0.0, description="Global step at which all replicas but the chief begin (asynchronous only)"
    )
    gradient_clipping_by_norm: NotNegative = Field(0.0, description="0 for no clipping")
    fine_tune_checkpoint: PlaceText | None = Field(None, description="Checkpoint to start from")
    fine_tune_checkpoint_type: Literal["detection", "classification"] = Field(
        "detection", description="Load all variables that fit, or only the backbone's"
    )
    max_number_of_boxes: Count = Field(100, description="Boxes per image are padded to this")
    augmentation: Augmentation = Field(Augmentation(), description="Done to training images")
    seed: Annotated[int, Field(ge=0)] = Field(1, description="Weights and order")
