"""With TensorFlow: data workers prepare the classifier's input, die, and come back."""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from collections.abc import Callable, Iterator

import pytest
from reading import read_until

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.agent.injected.for_programs.cluster_kit_input import distribute  # noqa: E402
from trainer.programs.classifier import image_files, input_pipeline, options  # noqa: E402

VARIABLE = "CLUSTER_KIT_DATA_SERVICE"


@pytest.fixture
def start(run_task, free_port, monkeypatch) -> Callable[[str], object]:
    """A function that starts a task of the data service, and waits until it is ready."""
    ports = [free_port() for _ in range(3)]
    address, *workers = (f"127.0.0.1:{port}" for port in ports)
    spec = {"data_dispatcher": [address], "data_worker": workers}
    monkeypatch.setenv(VARIABLE, f"grpc://{address}")

    def one(name: str) -> object:
        secret = {"CLUSTER_KIT_BEACON_SECRET": "of this run", "CUDA_VISIBLE_DEVICES": "-1"}
        task = run_task(name, spec, "data-service", anew=True, **secret)
        read_until(task, "tf.data service ready")
        return task

    return one


def test_they_share_the_files_and_go_on_after_their_death(start, pictures):
    dispatcher, first = start("data_dispatcher-0"), start("data_worker-0")
    start("data_worker-1")
    plain = ("--model", "cnn", "--image-size", "8", "--no-flip")
    given = options.parse((*plain, "--batch-size", "30"), pictures, pictures.parent)
    given = dataclasses.replace(given, rotation=0, shift=0, zoom=0, shear=0)
    split = image_files.split(pictures, "Train", image_files.class_names(pictures))
    batches = (
        frozenset(image.numpy().tobytes() for image in images)
        for images, _ in input_pipeline.training_set(split, 2, given, 2, 1)
    )
    # 60 images in batches of 30: each is the whole part of a data worker.
    shares = of_both(batches)
    assert [len(share) for share in shares] == [30, 30]
    assert len(frozenset.union(*shares)) == 60
    for task, name in ((first, "data_worker-0"), (dispatcher, "data_dispatcher-0")):
        task.kill()
        task.wait()
        assert set(itertools.islice(batches, 20)) <= shares
        start(name)
    assert of_both(batches) == shares


def of_both(batches: Iterator[frozenset[bytes]]) -> set[frozenset[bytes]]:
    """The parts of both data workers, of which one may begin much earlier."""
    shares: set[frozenset[bytes]] = set()
    until = time.monotonic() + 60
    while len(shares) < 2 and time.monotonic() < until:
        shares.add(next(batches))
    return shares


def test_an_evaluator_and_a_program_without_them_keep_their_dataset(monkeypatch):
    dataset = tf.data.Dataset.range(3)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert distribute(dataset) is dataset
    monkeypatch.setenv(VARIABLE, "grpc://127.0.0.1:1")
    task = '{"cluster": {"evaluator": ["127.0.0.1:1"]}, "task": {"type": "evaluator", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", task)
    assert distribute(dataset) is dataset
