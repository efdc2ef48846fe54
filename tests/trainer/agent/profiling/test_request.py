"""The request to TensorFlow's profiler, and the command line for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.agent.errors import ContractError
from trainer.agent.profiling.profile import event_files, parse, profile_request, sentences, why
from trainer.agent.servers.wire import fields
from trainer.agent.task import read_task

CLUSTER = {"master": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222"], "ps": ["10.0.0.3:2222"]}


@pytest.fixture
def task(tmp_path):
    config = {"cluster": CLUSTER, "task": {"type": "worker", "index": 0}}
    return read_task({"TF_CONFIG": json.dumps(config), "CLUSTER_KIT_OUTPUT": str(tmp_path)})


def test_a_request_has_the_fields_of_the_service():
    found = dict(fields(profile_request("ps-0", Path("/output/plugins/profile"), "now", 1.5)))
    options = dict(fields(found.pop(4)))
    assert found == {
        1: 1500, 2: 1_000_000, 5: b"/output/plugins/profile", 6: b"now", 7: b"ps-0",
    }  # fmt: skip
    assert options == {2: 2, 3: 1, 5: 1, 9: 1500, 10: b"/output/plugins/profile"}


def test_all_tasks_are_traced_if_none_is_named(task):
    assert parse(task, ["2"]) == (2.0, ["chief-0", "ps-0", "worker-0"])
    assert parse(task, ["0.5", "ps-0"]) == (0.5, ["ps-0"])


def test_only_the_leader_of_an_all_reduce_is_traced_if_none_is_named():
    config = {"cluster": {"worker": ["10.0.0.1:1", "10.0.0.2:1"]}}
    task = read_task({"TF_CONFIG": json.dumps({**config, "task": {"type": "worker", "index": 0}})})
    assert parse(task, ["2"]) == (2.0, ["worker-0"])
    assert parse(task, ["2", "worker-1"]) == (2.0, ["worker-1"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "seconds above 0, at most 60"),
        (["soon"], "profile soon: seconds above 0"),
        (["0"], "seconds above 0"),
        (["61"], "at most 60"),
        (["nan"], "seconds above 0"),
        (["1", "evaluator-0"], "evaluator-0 has no TensorFlow server"),
    ],
)
def test_invalid_requests_are_refused(task, arguments, message):
    with pytest.raises(ContractError, match=message):
        parse(task, arguments)


def test_files_are_where_tensorboard_looks_for_them(tmp_path):
    assert event_files(tmp_path) == tmp_path
    (tmp_path / "tensorboard").mkdir()
    assert event_files(tmp_path) == tmp_path / "tensorboard"


def test_the_reason_for_a_missing_task_is_a_sentence():
    missing = {
        "ps-0": why("DEADLINE_EXCEEDED", ""), "worker-1": why("UNAVAILABLE", "refused"),
        "worker-2": why("ABORTED", "Another profiling session is active"),
    }  # fmt: skip
    assert sentences(missing) == (
        "ps-0: it did not answer in time; worker-1: no TensorFlow server answers there; "
        "worker-2: another profile of it is running"
    )
    assert why("UNAVAILABLE", "", connected=True) == "it ended while it was traced"
    assert why("INTERNAL", "x" * 500) == "INTERNAL: " + "x" * 200
