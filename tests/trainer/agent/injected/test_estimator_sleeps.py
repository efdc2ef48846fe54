"""An Estimator's evaluator sleeps for minutes, and another waits for checkpoints forever; both end
when the job ends."""

from __future__ import annotations

import itertools
import threading
import time
from types import ModuleType, SimpleNamespace

import pytest

from trainer.agent.injected import tensorflow_patches


def evaluator(ended: threading.Event) -> ModuleType:
    """Returns the module of Estimators in which the evaluator sleeps."""
    training = ModuleType("training")
    training.time = time
    tensorflow_patches.end_sleeps_with_job(training, SimpleNamespace(job_has_ended=ended.is_set))
    return training


def test_a_sleep_ends_with_the_job(monkeypatch):
    monkeypatch.setattr(tensorflow_patches, "AFTER_JOB_S", 0.1)
    ended = threading.Event()
    training = evaluator(ended)
    threading.Timer(0.2, ended.set).start()
    began = time.monotonic()
    training.time.sleep(60)
    assert time.monotonic() - began < 30
    assert training.time.time is time.time


def test_a_sleep_is_not_shortened_before_the_end():
    began = time.monotonic()
    evaluator(threading.Event()).time.sleep(0.3)
    assert time.monotonic() - began >= 0.3


def checkpoints(monkeypatch, found, ended):
    """Returns TensorFlow's iterator over checkpoints, after it was patched."""
    monkeypatch.setattr(tensorflow_patches, "CHECKPOINT_LOOK_S", 0.01)
    train = SimpleNamespace(latest_checkpoint=lambda _: next(found), checkpoints_iterator=iter)
    mailbox = SimpleNamespace(job_has_ended=ended)
    assert tensorflow_patches.end_checkpoints_with_job(SimpleNamespace(train=train), mailbox)
    return train.checkpoints_iterator


@pytest.mark.parametrize("more", [{}, {"timeout": 0.01, "timeout_fn": lambda: False}])
def test_checkpoints_end_with_the_job_after_the_last_one(monkeypatch, more):
    found = iter([None, "ckpt-1", "ckpt-1", "ckpt-2", "ckpt-2"])
    ends = iter([False, True, True])  # before each look for another than the first
    over = checkpoints(monkeypatch, found, lambda: next(ends))
    assert list(over("/output", **more)) == ["ckpt-1", "ckpt-2"]
    assert not [*found, *ends]


def test_without_any_checkpoint_an_evaluator_waits_as_long_as_it_wants(monkeypatch):
    over = checkpoints(monkeypatch, itertools.repeat(None), lambda: True)
    began = time.monotonic()
    assert list(over("/wrong", timeout=0.3)) == []
    assert time.monotonic() - began >= 0.25
