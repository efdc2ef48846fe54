"""All problems of a pipeline configuration are reported together, with key, value, rule and
hint."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipelines import PLACES, SMALLEST, problems

from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.errors import PipelineError


def test_all_problems_of_a_toml_file_are_reported_together(tmp_path: Path) -> None:
    text = """
    [model]
    num_clases = 3
    feature_extractor = "mobilenet_v3"
    image_size = 16
    [model.anchors]
    feature_strides = [8, 12]
    aspect_ratios = "1"
    [train_config]
    num_steps = 1.5
    batch_size = true
    learning_rate = { type = "cosin", learning_rate = 0.1 }
    optimizer = { type = "rmsprop", momentm = 0.9, momentum = 1.5 }
    augmentation.random_crop = { min_scale = 0.8, max_scale = 0.5 }
    [train_input_reader]
    input_path = []
    label_map_path = "{{ dta }}/map.pbtxt"
    [extra]
    a = 1
    """
    found = problems(tmp_path, text, "p.toml", "no-value", "train_config.seed=-1")
    assert set(found) == {
        "--set no-value",
        "model.num_classes",
        "model.num_clases",
        "model.feature_extractor",
        "model.image_size",
        "model.anchors.feature_strides[1]",
        "model.anchors.aspect_ratios",
        "train_config.num_steps",
        "train_config.batch_size",
        "--set train_config.seed",
        "train_config.learning_rate.type",
        "train_config.optimizer.momentm",
        "train_config.optimizer.momentum",
        "train_config.augmentation.random_crop",
        "train_input_reader.input_path",
        "train_input_reader.label_map_path",
        "eval_input_reader",
        "extra",
    }
    assert found["model.num_clases"] == "3 | no such key | did you mean `num_classes`?"
    assert found["train_config.optimizer.momentm"].endswith("did you mean `momentum`?")
    assert "known: {{ data }}, {{ output }}" in found["train_input_reader.label_map_path"]
    assert "must be one of 'constant'" in found["train_config.learning_rate.type"]
    assert found["train_config.augmentation.random_crop"].split(" | ")[1] == (
        "min_scale must not be above max_scale"
    )
    assert "must be a whole number" in found["train_config.batch_size"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.toml", b"[model", "not valid TOML"),
        ("p.toml", b"\xff", "no text"),
        ("p.config", b"model {", "line 1: the file ends inside the block of line 1"),
        ("p.toml", b"model = 3", "must be a table"),
    ],
)
def test_files_that_are_no_pipeline(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(PipelineError, match=message):
        pipeline_file.read(tmp_path / name, PLACES)


def test_a_pipeline_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"none.toml: cannot be read: No such file"):
        pipeline_file.read(tmp_path / "none.toml", PLACES)


def test_thresholds_strides_and_schedules_must_be_consistent(tmp_path: Path) -> None:
    steps = "[{step=20, learning_rate=0.1}, {step=10, learning_rate=0.01}]"
    found = problems(
        tmp_path,
        SMALLEST,
        "p.toml",
        "model.matcher.unmatched_threshold=0.9",
        "model.anchors.feature_strides=[16, 8]",
        f"train_config.learning_rate={{type='manual_step', learning_rate=1.0, schedule={steps}}}",
    )
    assert "must not be above matched_threshold" in found["model.matcher"]
    assert "must rise from fine to coarse" in found["model.anchors"]
    assert "the steps of the schedule must rise" in found["--set train_config.learning_rate"]
    found = problems(tmp_path, SMALLEST, "p.toml", "model.anchors.scales=[0.1, 0.2]")
    assert "2 scales for 3 feature_strides" in found["model.anchors"]
