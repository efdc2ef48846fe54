"""The other trainers of an all-reduce, and the number of images per step; without TensorFlow."""

from __future__ import annotations

import os
import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import PYTHON

import trainer
from trainer.agent.servers.probe import Answer
from trainer.agent.task import read_task
from trainer.programs.classifier import mode, options, other_trainers
from trainer.programs.classifier.schedule import schedule_of

TF_CONFIG = (
    '{"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]},'
    ' "task": {"type": "worker", "index": 1}}'
)


WITH_A_MASTER = (
    '{"cluster": {"master": ["127.0.0.1:1"], "worker": ["127.0.0.1:2", "127.0.0.1:3"]},'
    ' "task": {"type": "%s", "index": 0}}'
)


def test_a_chief_that_is_called_master_is_one_of_the_others():
    worker = read_task({"TF_CONFIG": WITH_A_MASTER % "worker"})
    assert other_trainers.others(worker) == {"chief-0": "127.0.0.1:1", "worker-1": "127.0.0.1:3"}
    master = read_task({"TF_CONFIG": WITH_A_MASTER % "master"})
    assert other_trainers.others(master) == {"worker-0": "127.0.0.1:2", "worker-1": "127.0.0.1:3"}


def test_the_others_are_all_trainers_except_this_one():
    task = read_task({"TF_CONFIG": TF_CONFIG})
    assert other_trainers.others(task) == {"worker-0": "127.0.0.1:1", "worker-2": "127.0.0.1:3"}


def test_a_silent_or_restarted_trainer_is_missing():
    began = {"worker-0": 7, "worker-2": 8, "worker-3": 9}
    answers = [
        Answer("worker-0", "a:1", "worker-0", incarnation=7),
        Answer("worker-2", "b:1", "worker-2", incarnation=80),
        Answer("worker-3", "c:1", None),
    ]
    assert other_trainers.missing(answers, began) == ["worker-2", "worker-3"]


def test_a_trainer_that_never_starts_ends_the_program_and_is_named(tmp_path):
    pytest.importorskip("grpc", reason="grpc is in the image, not here")
    program = textwrap.dedent("""
        import time
        from trainer.programs.classifier.other_trainers import all_here_within
        from trainer.agent.task import read_task
        with all_here_within(read_task()):
            time.sleep(60)
    """)
    environment = os.environ | {
        "TF_CONFIG": TF_CONFIG, "CLUSTER_KIT_START_DEADLINE_S": "0.2",
        "CLUSTER_KIT_MAILBOX": str(tmp_path), "PYTHONPATH": trainer_path(),
    }  # fmt: skip
    ended = subprocess.run([PYTHON, "-c", program], env=environment, timeout=60, check=False)
    assert ended.returncode == 6
    words = (tmp_path / "last-words").read_text()
    assert "not all trainers were ready after 0.2 s" in words
    assert "worker-0 at 127.0.0.1:1 is silent" in words
    assert "worker-1" not in words


def trainer_path() -> str:
    return str(Path(trainer.__file__).parents[1])


@pytest.mark.parametrize(
    ("how", "update", "images_per_step", "steps"),
    [
        (mode.PARAMETER_SERVER, "async", 10, 31),
        (mode.PARAMETER_SERVER, "sync", 20, 16),
        (mode.ALL_REDUCE, "async", 30, 11),
        (mode.MIRRORED, "async", 10, 31),
        (mode.GRAPH, "sync", 30, 11),
        (mode.GRAPH, "async", 10, 31),
    ],
)
def test_a_step_uses_a_batch_of_each_trainer_that_takes_part(how, update, images_per_step, steps):
    given = options.parse(["--batch-size", "10", "--update", update], Path("/d"), Path("/o"))
    task = read_task({"TF_CONFIG": TF_CONFIG})
    cluster = {"worker": ("a:1", "b:1")} if how == mode.PARAMETER_SERVER else task.cluster
    schedule = schedule_of(how, replace(task, cluster=cluster), given, images=301, first_epoch=0)
    assert (schedule.images_per_step, schedule.steps_per_epoch) == (images_per_step, steps)
    fixed = replace(given, steps_per_epoch=5)
    assert schedule_of(how, replace(task, cluster=cluster), fixed, 301, 0).steps_per_epoch == 5
