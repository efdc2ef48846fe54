"""The pipeline configuration: model, training, evaluation and input of one detector, in one value.

Sections and fields carry the names of the Object Detection API's pipeline as far as they exist
there. `pipeline_file.read` makes it from TOML or from a classic `pipeline.config`; every path in it
is then absolute.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

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


class Pipeline(Part):
    """All of it."""

    model: Model
    train_config: TrainConfig
    train_input_reader: InputReader
    eval_input_reader: InputReader
    eval_config: EvalConfig = EvalConfig()
