"""An Estimator's evaluator sleeps for minutes; the sleep ends when the job ends."""

from __future__ import annotations

import threading
import time
from types import ModuleType, SimpleNamespace

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
