"""With TensorFlow: the program in a single task, on the sample set; checkpoints by name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.agent.errors import ContractError  # noqa: E402
from trainer.programs.detection.config.pipeline import Anchors, ConstantRate, Model, TrainConfig  # noqa: E402
from trainer.programs.detection.model import ssd, weights  # noqa: E402

SCENES = Path("/opt/datasets/digit-scenes")
SMALL = (
    *("--set", "model.image_size=32", "--set", "train_config.batch_size=4"),
    *("--set", 'model.feature_extractor="mobilenet_v1"', "--set", "model.depth_multiplier=0.25"),
    *("--set", "model.anchors.feature_strides=[8, 16]"),
    *("--set", "eval_config.num_examples=20", "--log-steps", "5"),
)


@pytest.fixture
def detection(run_task: Callable) -> Callable[..., str]:
    """Run the program to its end as a single worker; returns its output."""

    def run(*arguments: str, code: int = 0, data: Path = SCENES) -> str:
        task = run_task(
            "worker-0", {"worker": ["127.0.0.1:1"]}, "run", "detection", *SMALL, *arguments,
            CLUSTER_KIT_DATA=data,
        )  # fmt: skip
        output = task.communicate(timeout=400)[0]
        assert task.returncode == code, output
        return output

    return run


def test_a_single_task_trains_to_a_threshold_saves_its_model_and_resumes(
    detection, events, tmp_path
):
    detection("--steps", "500", "--loss-threshold", "1000")
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["reached"] == "loss-threshold"
    before = result["updates"]
    assert before < 100
    assert {"map", "map_50", "loss", "images_per_second"} <= set(result)
    assert result["classes"]["1"] == "0"
    assert "num_steps = 500" in (tmp_path / "pipeline.toml").read_text()
    check_model(tmp_path / "model")
    output = detection("--steps", str(before + 4), "--no-final-score")
    assert f"continuing at global step {before}" in output
    result = json.loads((tmp_path / "result.json").read_text())
    assert (result["reached"], result["updates"]) == ("steps", before + 4)
    metrics = [e for e in events("worker-0") if e["event"] == "metrics"]
    assert [e["updates"] for e in metrics] == [before, before + 4]


def check_model(saved: Path) -> None:
    """Check that the model takes any number of images of any size, and returns boxes in fractions
    of them."""
    served = tf.saved_model.load(str(saved)).signatures["serving_default"]
    found = served(images=tf.zeros([2, 50, 70, 3], tf.uint8))
    assert found["boxes"].shape[::2] == (2, 4)
    assert found["classes"].dtype == tf.int32 and found["scores"].dtype == tf.float32
    assert (saved / "label_map.pbtxt").read_text() == (SCENES / "label_map.pbtxt").read_text()


def test_a_loss_that_is_not_finite_ends_the_training(detection, events):
    output = detection(
        "--steps", "50", "--set", "train_config.learning_rate.learning_rate=1e30",
        "--set", "train_config.learning_rate.warmup_steps=0", code=5,
    )  # fmt: skip
    assert "the loss is not finite after step" in output
    assert "try a lower learning rate" in events("worker-0")[-1]["message"]


def test_a_broken_record_is_named(detection, events, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for file in SCENES.iterdir():
        (data / file.name).write_bytes(file.read_bytes())
    first = sorted(data.glob("train-*"))[0]
    content = bytearray(first.read_bytes())
    content[5000] ^= 255
    first.write_bytes(content)
    detection("--steps", "5", data=data, code=2)
    message = events("worker-0")[-1]["message"]
    assert first.name in message and "record" in message
    assert not (tmp_path / "checkpoints").exists()


def small_model(classes: int = 3) -> ssd.Detector:
    anchors = Anchors(feature_strides=(8, 16))
    backbone = {"feature_extractor": "mobilenet_v1", "depth_multiplier": 0.25}
    return ssd.build(Model(num_classes=classes, image_size=32, anchors=anchors, **backbone), 1)


def saved_in_graph_mode(target: Path) -> list:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        tf.compat.v1.get_variable("of_somebody_else", initializer=1.0)
        network = small_model().network
        assert len(tf.compat.v1.global_variables()) == len(network.weights) + 1
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(target), write_meta_graph=False)
        return session.run(network.weights)


def test_checkpoints_of_both_kinds_are_loaded_by_name(tmp_path):
    expected = saved_in_graph_mode(tmp_path / "checkpoints" / "model.ckpt-7")
    network = small_model().network
    for weight in network.weights:
        weight.assign(tf.zeros_like(weight))
    weights.load(network, str(tmp_path / "checkpoints" / "model.ckpt-7"))
    assert all((w.numpy() == e).all() for w, e in zip(network.weights, expected, strict=True))
    tf.train.Checkpoint(network=network).write(str(tmp_path / "checkpoints" / "ckpt-12"))
    again = small_model().network
    weights.load(again, str(tmp_path / "checkpoints" / "ckpt-12"))
    assert all((w.numpy() == e).all() for w, e in zip(again.weights, expected, strict=True))
    assert [(c.step, c.name) for c in weights.find(tmp_path)] == [
        (7, "model.ckpt-7"), (12, "ckpt-12"),
    ]  # fmt: skip


def starting_from(path: Path, kind: str = "detection") -> TrainConfig:
    return TrainConfig(
        num_steps=1,
        learning_rate=ConstantRate(learning_rate=1.0),
        fine_tune_checkpoint=str(path),
        fine_tune_checkpoint_type=kind,
    )


def test_variables_of_a_fine_tune_checkpoint_are_loaded_if_they_fit(tmp_path, capsys):
    saved_in_graph_mode(tmp_path / "old.ckpt-1")
    other = small_model(classes=5).network.weights
    names = {
        v.name
        for v in weights.to_start_from(starting_from(tmp_path / "old.ckpt-1"), other).values()
    }
    assert "conv1/kernel:0" in names
    assert {w.name for w in other} - names == {
        f"predictions_{stride}/{part}:0" for stride in (8, 16) for part in ("kernel", "bias")
    }
    assert f"{len(names)} of {len(other)} variables start from" in capsys.readouterr().out
    same = small_model().network.weights
    only = weights.to_start_from(starting_from(tmp_path / "old.ckpt-1", "classification"), same)
    assert not any(v.name.startswith("predictions") for v in only.values())


def test_an_invalid_fine_tune_checkpoint_is_named(tmp_path):
    variables = small_model().network.weights
    with pytest.raises(ContractError, match="no checkpoint can be read there"):
        weights.to_start_from(starting_from(tmp_path / "nothing"), variables)
    tf.train.Checkpoint(other=tf.Variable(1.0)).write(str(tmp_path / "other"))
    with pytest.raises(ContractError, match="by name and shape"):
        weights.to_start_from(starting_from(tmp_path / "other"), variables)
