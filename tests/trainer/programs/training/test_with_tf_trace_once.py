"""Saves of a checkpoint that is traced once: TensorFlow's own files, with the new values."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.programs.training.checkpoint_files import trace_once  # noqa: E402

keras = tf.keras


def network() -> tf.keras.Model:
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3), keras.layers.Dense(1)])
    made.compile(keras.optimizers.Adam(), "mse")
    made.optimizer.build(made.trainable_variables)
    return made


def test_each_save_has_the_values_of_its_time(tmp_path: Path) -> None:
    saved, again = network(), network()
    trace_once(saved._checkpoint)
    for number in range(3):
        for weight in saved.weights:
            weight.assign(tf.fill(weight.shape, float(number)))
        saved.save_weights(str(tmp_path / f"ckpt-{number}"), save_format="tf")
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "ckpt-2")
    for number in range(3):
        again.load_weights(str(tmp_path / f"ckpt-{number}")).assert_existing_objects_matched()
        assert {float(value) for weight in again.get_weights() for value in weight.flat} == {number}


def test_a_manager_counts_and_keeps_as_before(tmp_path: Path) -> None:
    step = tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(model=network(), step=step), str(tmp_path / "new"), max_to_keep=1
    )
    trace_once(manager.checkpoint)
    for number in range(1, 4):
        step.assign(10 * number)
        assert manager.save() == str(tmp_path / "new" / f"ckpt-{number}")
    assert manager.checkpoints == [str(tmp_path / "new" / "ckpt-3")]
    restored = tf.Variable(0, dtype=tf.int64)
    reader = tf.train.Checkpoint(step=restored)
    reader.restore(manager.latest_checkpoint).expect_partial()
    assert (int(restored), int(reader.save_counter)) == (30, 3)


def test_ops_are_built_in_the_first_save_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, walks = network(), []
    saver = saved._checkpoint._saver
    gather = saver._gather_serialized_tensors
    monkeypatch.setattr(
        saver, "_gather_serialized_tensors", lambda *given: walks.append(1) or gather(*given)
    )
    trace_once(saved._checkpoint)
    for number in range(3):
        saved.save_weights(str(tmp_path / f"ckpt-{number}"), save_format="tf")
    assert walks == [1]
