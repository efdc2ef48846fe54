"""With TensorFlow: the files for TensorBoard, as its own readers find them."""

from __future__ import annotations

import os

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.training import board  # noqa: E402
from trainer.programs.training.board import TRAIN, VALIDATION, Board  # noqa: E402


def found(folder) -> list:
    """Returns all values in the event files of one folder, which has no subfolders with event
    files."""
    return [
        (event.step, value)
        for file in sorted(folder.glob("events.out.tfevents.*"))
        for event in tf.compat.v1.train.summary_iterator(str(file))
        for value in event.summary.value
    ]


def plugin(value) -> str:
    return value.metadata.plugin_data.plugin_name


def test_training_and_validation_have_the_same_tags_in_two_runs(tmp_path):
    Board(tmp_path, TRAIN).scalars(7, {"loss": 0.5, "accuracy": 0.25})
    Board(tmp_path, VALIDATION).scalars(7, {"loss": 0.75})
    train, validation = (found(tmp_path / "tensorboard" / run) for run in ("train", "validation"))
    told = {value.tag: (step, tf.make_ndarray(value.tensor).item()) for step, value in train}
    assert told == {"loss": (7, 0.5), "accuracy": (7, 0.25)}
    assert [(step, value.tag) for step, value in validation] == [(7, "loss")]


def test_a_models_layers_are_shown_and_an_unserializable_model_is_omitted(tmp_path):
    class Own(tf.keras.Model):
        def __init__(self, _needed):
            super().__init__()

        def get_config(self):
            raise NotImplementedError

    inputs = tf.keras.Input((3,))
    Board(tmp_path, TRAIN).network(Own(1))
    assert found(tmp_path / "tensorboard" / "train") == []
    outputs = tf.keras.layers.Dense(2, name="last")(inputs)
    Board(tmp_path, VALIDATION).network(tf.keras.Model(inputs, outputs))
    ((_, shown),) = found(tmp_path / "tensorboard" / "validation")
    assert (shown.tag, plugin(shown)) == ("keras", "graph_keras_model")
    assert b'"last"' in tf.make_ndarray(shown.tensor).item()


def test_pictures_have_their_size(tmp_path):
    Board(tmp_path, VALIDATION).pictures(3, "detections", [b"one", b"two"], (320, 200))
    ((step, shown),) = found(tmp_path / "tensorboard" / "validation")
    assert (step, plugin(shown)) == (3, "images")
    assert list(tf.make_ndarray(shown.tensor)) == [b"320", b"200", b"one", b"two"]


def test_writers_of_the_same_second_have_separate_event_files(tmp_path):
    for step in range(3):
        summary = tf.compat.v1.Summary()
        summary.value.add(tag="loss", simple_value=0.5)
        with board.graph_writer(tmp_path) as writer:
            writer.add_summary(summary, step)
    assert sorted(step for step, _ in found(tmp_path)) == [0, 1, 2]


def test_hyperparameters_are_written_as_the_plugin_reads_them(tmp_path):
    from tensorboard.plugins.hparams import plugin_data_pb2

    cluster = {"worker": ("a:1", "b:1"), "ps": ("c:1",)}
    values = {"batch_size": 8, "optimizer": {"type": "adam", "momentum": None}, "rates": (0.1, 0.2),
              "flip": True}  # fmt: skip
    board.write_hyperparameters(tmp_path, cluster, values)
    ((_, shown), *_) = found(tmp_path / "tensorboard")
    assert plugin(shown) == "hparams"
    data = plugin_data_pb2.HParamsPluginData.FromString(shown.metadata.plugin_data.content)
    told = {
        name: value.string_value or value.number_value or value.bool_value
        for name, value in data.session_start_info.hparams.items()
    }
    assert told == {"worker tasks": 2, "ps tasks": 1, "batch_size": 8, "rates": "0.1 0.2",
                    "optimizer.type": "adam", "flip": True}  # fmt: skip
