"""Pipeline configurations: defaults, overrides, and reading a written configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipelines import CLASSIC, PLACES, SMALLEST, load

from trainer.programs.detection.config import pipeline_file
from trainer.programs.detection.config.pipeline import ConstantRate, CosineRate, Pipeline


def test_the_smallest_pipeline_gets_its_defaults_and_absolute_paths(tmp_path: Path) -> None:
    pipeline = load(tmp_path, SMALLEST).pipeline
    assert pipeline.model.feature_extractor == "mobilenet_v2"
    assert pipeline.train_config.learning_rate == ConstantRate(learning_rate=0.1)
    assert pipeline.train_input_reader.input_path == (f"{tmp_path}/train-*.tfrecord",)
    assert pipeline.train_input_reader.label_map_path == "/data/map.pbtxt"
    assert pipeline.eval_input_reader.input_path == (f"{tmp_path}/a.tfrecord", "/b/c.tfrecord")


def test_a_pipeline_cannot_be_changed(tmp_path: Path) -> None:
    pipeline = load(tmp_path, SMALLEST).pipeline
    with pytest.raises(ValueError, match="frozen"):
        pipeline.model.num_classes = 4
    assert isinstance(pipeline.model.anchors.aspect_ratios, tuple)


def test_overrides_replace_values_of_the_file(tmp_path: Path) -> None:
    pipeline = load(
        tmp_path,
        SMALLEST,
        "p.toml",
        "train_config.num_steps=7",
        "model.feature_extractor=mobilenet_v1",
        "model.anchors.aspect_ratios=[1.0, 3.0]",
        "train_config.learning_rate={type='cosine', learning_rate=0.5}",
    ).pipeline
    assert pipeline.train_config.num_steps == 7
    assert pipeline.model.feature_extractor == "mobilenet_v1"
    assert pipeline.model.anchors.aspect_ratios == (1.0, 3.0)
    assert pipeline.train_config.learning_rate == CosineRate(learning_rate=0.5)


def test_one_value_of_a_table_is_overridden_without_the_others(tmp_path: Path) -> None:
    rate = load(tmp_path, SMALLEST, "p.toml", "train_config.learning_rate.warmup_steps=5")
    expected = ConstantRate(learning_rate=0.1, warmup_steps=5)
    assert rate.pipeline.train_config.learning_rate == expected


def test_a_written_pipeline_can_be_read_again(tmp_path: Path) -> None:
    for name, text in (("p.toml", SMALLEST), ("p.config", CLASSIC)):
        pipeline = load(tmp_path, text, name).pipeline
        copy = tmp_path / "elsewhere" / "copy.toml"
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(pipeline_file.to_toml(pipeline))
        assert pipeline_file.read(copy, {}) == pipeline


def test_a_written_schedule_of_steps_can_be_read_again(tmp_path: Path) -> None:
    steps = "[{step=10, learning_rate=0.1}, {step=20, learning_rate=0.01}]"
    rate = f"{{type='manual_step', learning_rate=1.0, schedule={steps}}}"
    pipeline = load(tmp_path, SMALLEST, "p.toml", f"train_config.learning_rate={rate}").pipeline
    assert [s.step for s in pipeline.train_config.learning_rate.schedule] == [10, 20]
    again = load(tmp_path, pipeline_file.to_toml(pipeline)).pipeline
    assert again == pipeline


def test_every_field_has_a_description() -> None:
    schema = Pipeline.model_json_schema()
    silent = [
        f"{name}.{key}"
        for name, part in schema["$defs"].items()
        for key, field in part.get("properties", {}).items()
        if "description" not in field and key not in ("type", "step")
    ]
    assert silent == ["RateStep.learning_rate"]


def test_the_sample_sets_own_pipeline_is_valid() -> None:
    folder = Path(pipeline_file.__file__).parents[1] / "scenes"
    pipeline = pipeline_file.read(folder / "pipeline.toml", PLACES)
    assert pipeline.model.num_classes == 10


def test_the_sample_set_leaves_the_number_of_steps_to_the_manifests() -> None:
    folder = Path(pipeline_file.__file__).parents[1] / "scenes"
    found = pipeline_file.load(folder / "pipeline.toml", PLACES, (), 360).pipeline
    assert found.train_config.num_steps == 360
