"""The program's arguments, which override a pipeline configuration, and which tasks train."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pydantic", reason="pydantic is in the image and in this project's environment")
from pipelines import CLASSIC, SMALLEST

from trainer.agent.errors import ContractError
from trainer.programs.detection import options


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.toml").write_text(SMALLEST)
    return tmp_path


def parse(data: Path, *arguments: str) -> options.Options:
    return options.parse(arguments, data, data / "output")


def test_the_data_sets_configuration_is_the_default(data):
    found = parse(data)
    assert found.graph.steps == found.pipeline.train_config.num_steps == 100
    assert found.graph.loss_threshold is None
    assert found.pipeline.train_input_reader.input_path == (f"{data}/train-*.tfrecord",)
    assert found.pipeline.train_input_reader.label_map_path == f"{data}/map.pbtxt"


def test_arguments_override_the_configuration(data):
    found = parse(
        data, "--steps", "7", "--loss-threshold", "0.5", "--update", "sync", "--num-clones", "2",
        "--set", "train_config.batch_size=4", "--set", "model.image_size=64",
    )  # fmt: skip
    assert found.graph.steps == found.pipeline.train_config.num_steps == 7
    assert found.graph.loss_threshold == 0.5
    assert (found.graph.update, found.graph.num_clones) == ("sync", 2)
    assert found.pipeline.train_config.batch_size == 4
    assert found.pipeline.model.image_size == 64


def test_the_configurations_number_of_steps_overrides_the_manifests(data):
    assert parse(data, "--default-steps", "7").graph.steps == 100
    (data / "classic.config").write_text(CLASSIC)
    classic = ("--pipeline-config", "classic.config", "--default-steps", "7")
    assert parse(data, *classic).graph.steps == 200000
    for given in (["--steps", "9"], ["--set", "train_config.num_steps=9"]):
        assert parse(data, "--default-steps", "7", *given).graph.steps == 9


def test_a_configuration_without_a_number_of_steps_uses_the_manifests(data):
    pipeline = data / "pipeline.toml"
    pipeline.write_text(SMALLEST.replace("num_steps = 100\n", ""))
    assert parse(data).graph.steps == 1200
    found = parse(data, "--default-steps", "7")
    assert found.graph.steps == found.pipeline.train_config.num_steps == 7
    pipeline.write_text("train_config = 3\n")
    with pytest.raises(ContractError, match="train_config = 3: must be a table"):
        parse(data, "--default-steps", "7")


def test_another_configuration_is_relative_to_the_data(data):
    (data / "other.toml").write_text(SMALLEST.replace("100", "200"))
    for path in ("other.toml", str(data / "other.toml")):
        assert parse(data, "--pipeline-config", path).graph.steps == 200


def test_problems_are_named_with_their_key(data):
    with pytest.raises(ContractError, match=r"train_config\.batch_sise") as problem:
        parse(data, "--set", "train_config.batch_sise=4", "--set", "model.num_classes=0")
    assert "model.num_classes" in str(problem.value)
    with pytest.raises(ContractError, match=r"nowhere\.toml"):
        parse(data, "--pipeline-config", "nowhere.toml")
