"""With TensorFlow: properties of the input pipeline, and a short training in one task."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from tensorflow.python.eager import context  # noqa: E402

from trainer.agent.injected.for_programs.cluster_kit_input import worker_index  # noqa: E402
from trainer.contract.endings import EXIT_TRAINING_FAILED  # noqa: E402
from trainer.programs.classifier import (  # noqa: E402
    callbacks,
    classifier_model,
    image_files,
    input_pipeline,
    options,
)

SMALL = ("--model", "cnn", "--image-size", "8", "--batch-size", "8", "--no-flip")


def chosen(pictures: Path, *more: str) -> options.Options:
    return options.parse((*SMALL, *more), pictures, pictures.parent)


def still(given: options.Options, **more: object) -> options.Options:
    return dataclasses.replace(given, rotation=0, shift=0, zoom=0, shear=0, flip=False, **more)


def test_without_augmentation_a_batch_is_unchanged(pictures):
    images = tf.random.uniform((5, 8, 8, 3), 0, 255)
    same = input_pipeline.augment(images, still(chosen(pictures)), 3)
    assert float(tf.reduce_max(tf.abs(same - images))) < 1e-3


def test_flips_mirror_some_images_and_nothing_else(pictures):
    images = tf.random.uniform((64, 8, 8, 3), 0, 255)
    flipped = input_pipeline.augment(
        images, dataclasses.replace(still(chosen(pictures)), flip=True), 3
    )
    kept = tf.reduce_max(tf.abs(flipped - images), (1, 2, 3)) < 1e-2
    mirrored = tf.reduce_max(tf.abs(flipped - images[:, :, ::-1]), (1, 2, 3)) < 1e-2
    assert bool(tf.reduce_all(kept | mirrored))
    assert 10 < int(tf.reduce_sum(tf.cast(mirrored, tf.int32))) < 54


def test_workers_share_the_files_without_overlap(pictures):
    given = still(chosen(pictures), batch_size=30)
    split = image_files.split(pictures, "Train", image_files.class_names(pictures))
    shares = []
    for index in (0, 1):
        images, _ = next(iter(input_pipeline.training_set(split, 2, given, 2, index)))
        shares.append({image.numpy().tobytes() for image in images})
    assert [len(share) for share in shares] == [30, 30]
    assert not shares[0] & shares[1]


def test_a_share_smaller_than_a_batch_still_fills_it(pictures):
    given = chosen(pictures, "--batch-size", "128")
    split = image_files.split(pictures, "Train", image_files.class_names(pictures))
    images, labels = next(iter(input_pipeline.training_set(split, 2, given, 100, 70)))
    assert images.shape == (128, 8, 8, 3)
    assert labels.shape == (128, 2)


def test_the_worker_index_of_this_process():
    assert int(worker_index()) == 0


def test_the_cnn_has_a_kernel_that_is_large_enough_to_split(pictures):
    for size in ("8", "16", "28", "32"):
        network = classifier_model.build(chosen(pictures, "--image-size", size), 10)
        assert max(weight.shape.num_elements() * 4 for weight in network.weights) >= 512 << 10


def test_a_single_task_trains_resumes_and_detects_that_it_has_finished(run_task, events, pictures):
    def run(epochs: int, *more: str) -> str:
        task = run_task(
            "worker-0", {"worker": ["127.0.0.1:1"]}, "run", "classifier", *SMALL,
            "--epochs", str(epochs), "--steps-per-epoch", "20", "--learning-rates", "0:1e-3", *more,
            CLUSTER_KIT_DATA=pictures,
        )  # fmt: skip
        output = task.communicate(timeout=120)[0]
        assert task.returncode == 0, output
        return output

    run(2)
    output = pictures.parent
    assert (output / "model" / "saved_model.pb").exists()
    assert json.loads((output / "result.json").read_text())["test_accuracy"] > 0.9
    assert [e["epoch"] for e in events("worker-0") if e["event"] == "epoch"] == [1, 2]
    run(3)
    epochs = [(e["epoch"], e["step"]) for e in events("worker-0") if e["event"] == "epoch"]
    assert epochs == [(1, 20), (2, 40), (3, 60)]
    told = [e for e in events("worker-0") if e["event"] == "metrics"][-1]
    assert "nothing to do" in run(3)
    again = [e for e in events("worker-0") if e["event"] == "metrics"][-1]
    assert {**again, "time": 0} == {**told, "time": 0}


def test_a_single_task_trains_on_all_its_devices_and_resumes(run_task, events, pictures):
    for epochs in (1, 2):
        task = run_task(
            "worker-0", {"worker": ["127.0.0.1:1"]}, "run", "classifier", *SMALL,
            "--epochs", str(epochs), "--steps-per-epoch", "20", "--learning-rates", "0:1e-3",
            CLUSTER_KIT_DATA=pictures, CLUSTER_KIT_SIMULATE_GPUS=2,
        )  # fmt: skip
        output = task.communicate(timeout=120)[0]
        assert task.returncode == 0, output
        assert "training on CPU:0, CPU:1" in output
    steps = [(e["epoch"], e["step"]) for e in events("worker-0") if e["event"] == "epoch"]
    assert steps == [(1, 20), (2, 40)]


def test_a_loss_that_is_not_finite_ends_it(run_task, events, pictures):
    task = run_task(
        "worker-0", {"worker": ["127.0.0.1:1"]}, "run", "classifier", *SMALL, "--epochs", "2",
        "--steps-per-epoch", "10", "--learning-rates", "0:1e38", CLUSTER_KIT_DATA=pictures,
    )  # fmt: skip
    task.communicate(timeout=120)
    assert task.returncode == EXIT_TRAINING_FAILED
    end = events("worker-0")[-1]
    assert end["reason"] == "failed"
    assert "the loss is nan in epoch 1 (step 10)" in end["message"]
    assert not list((pictures.parent / "checkpoints").glob("*.index"))


def test_what_a_callback_restores_is_no_step(pictures):
    """Another callback restores in `on_train_begin`, perhaps after this one."""
    told: list[dict] = []
    progress = SimpleNamespace(write=lambda event, **facts: told.append({"event": event, **facts}))
    told_steps = lambda: [one for one in told if one["event"] == "step"]  # noqa: E731
    counter = tf.Variable(0, dtype=tf.int64)
    report = callbacks.EpochReport(
        chosen(pictures),
        SimpleNamespace(strategy="", images_per_step=8, steps_per_epoch=600, epochs=1),
        progress,
    )
    report.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=counter), variables=[]))
    report.on_train_begin()
    assert not any(thread.name == "steps" for thread in threading.enumerate())
    counter.assign(540)
    report.on_epoch_begin(9)
    until = time.monotonic() + 20
    while not told_steps() and time.monotonic() < until:
        counter.assign_add(1)
        time.sleep(0.02)
    report._ticker.stop()
    assert told_steps()[0]["step"] > 540 and told_steps()[0]["steps_per_s"] < 200


def test_the_ticker_reads_the_counter_on_the_device_that_has_it(pictures):
    """TensorFlow is not safe if two threads run functions of several devices."""
    counter, read_on = tf.Variable(7, dtype=tf.int64), []

    def read_value() -> tf.Tensor:
        read_on.append(context.context().device_name)
        return counter.read_value()

    schedule = SimpleNamespace(strategy="", images_per_step=8, steps_per_epoch=1, epochs=1)
    report = callbacks.EpochReport(chosen(pictures), schedule, None)
    there = SimpleNamespace(device=counter.device, read_value=read_value)
    report.set_model(SimpleNamespace(optimizer=SimpleNamespace(iterations=there), variables=[]))
    assert context.context().device_name != counter.device
    assert report._step() == 7
    assert read_on == [counter.device]
