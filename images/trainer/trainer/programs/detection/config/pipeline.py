"""The pipeline configuration: model, training, evaluation and input of one detector, in one value.

Sections and fields carry the names of the Object Detection API's pipeline as far as they exist
there. `pipeline_file.read` makes it from TOML or from a classic `pipeline.config`; every path in it
is then absolute.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from trainer.programs.detection.config.field_types import (
    Count,
    CountOrNone,
    Fraction,
    NotEmpty,
    Part,
    PlaceText,
    listed,
)
from trainer.programs.detection.config.model_fields import Model
from trainer.programs.detection.config.train_fields import TrainConfig


class InputReader(Part):
    """TFRecords of tf.train.Example."""

    input_path: Annotated[tuple[PlaceText, ...], BeforeValidator(listed), NotEmpty] = Field(
        description="Files, or patterns such as `train-*.tfrecord`"
    )
    label_map_path: PlaceText = Field(description="The label map, a .pbtxt")


class EvalConfig(Part):
    """How checkpoints are scored."""

    batch_size: Count = Field(32, description="Images at a time")
    num_examples: CountOrNone = Field(0, description="Images at most; 0 for all")
    num_visualizations: CountOrNone = Field(12, description="Images drawn with their detections")
    min_score_threshold: Fraction = Field(0.4, description="Only detections above are drawn")
    use_moving_averages: bool | None = Field(
        None, description="Score and save the averages; where absent: if the optimizer keeps them"
    )


class Pipeline(Part):
    """All of it."""

    model: Model
    train_config: TrainConfig
    train_input_reader: InputReader
    eval_input_reader: InputReader | None
    """None only for a configuration in parts that has none: nothing can be scored then."""
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
        """Whether the variables' moving averages are scored and saved, instead of the variables."""
        chosen = self.eval_config.use_moving_averages
        kept = self.train_config.optimizer.use_moving_average
        return kept if chosen is None else chosen
