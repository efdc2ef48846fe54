"""Training that waits for a lost task is reported as waiting; training that continues is not."""

from __future__ import annotations

import json

import pytest

from trainer.agent.beacon.messages import DONE, FAILED, LOST, Joined, Left, Silent
from trainer.agent.progress_file import Progress
from trainer.agent.supervisor.stall import Waits
from trainer.contract.events import Phase, Step


@pytest.fixture
def file(tmp_path):
    return tmp_path / "progress.jsonl"


@pytest.fixture
def waits(file):
    return Waits(Progress(file), "worker-0")


def written(file) -> list[tuple[str, str, float]]:
    events = map(json.loads, file.read_text().splitlines())
    return [(event["event"], event["of"], event["seconds"]) for event in events]


def step(number: int) -> dict[str, object]:
    return Step(step=number)


def train(waits: Waits, *seconds: int, first: int = 0) -> None:
    """Report one new step at each of these seconds, and look."""
    for second in seconds:
        waits.reported("worker-0", step(first + second), second)
        waits.look(second)


def look(waits: Waits, *seconds: int) -> None:
    for second in seconds:
        waits.look(second)


@pytest.mark.parametrize(
    "loss", [Left("worker-1", LOST), Left("worker-1", FAILED), Silent("worker-1", 10.0)]
)
def test_a_wait_is_reported_once_with_its_length(waits, file, capsys, loss):
    train(waits, 1, 2, 3)
    waits.heard(loss, 3)
    train(waits, 4)  # made before the loss, reported after it
    look(waits, *range(5, 12))
    assert written(file) == [("waiting", "worker-1", 5)]
    waits.heard(Joined("worker-1"), 12)
    train(waits, 14, 15)
    assert written(file)[1:] == [("waited", "worker-1", 11)]
    assert capsys.readouterr().err == (
        "worker-0: training waits for worker-1, which was lost 5 s ago\n"
        "worker-0: training continues; it waited 11 s for worker-1\n"
    )


def test_training_that_continues_without_the_task_waits_for_none(waits, file):
    train(waits, 1, 2)
    waits.heard(Left("worker-1", LOST), 2)
    train(waits, *range(3, 12))
    look(waits, *range(12, 20))
    assert written(file) == []


def test_a_task_that_training_did_without_is_not_waited_for_when_another_is_lost(waits, file):
    train(waits, 1, 2)
    waits.heard(Left("worker-1", LOST), 2)
    train(waits, *range(3, 22))
    waits.heard(Silent("worker-1", 22.0, server=True), 24)
    look(waits, *range(24, 32))
    waits.heard(Silent("ps-1", 10.0), 32)
    look(waits, *range(32, 38))
    assert written(file) == [("waiting", "ps-1", 5)]
    waits.heard(Joined("worker-1"), 38)
    train(waits, 39, 40)
    waits.heard(Silent("worker-1", 10.0), 41)
    look(waits, *range(41, 47))
    assert written(file)[2:] == [("waiting", "worker-1", 5)]


def test_nobody_knows_what_a_program_without_steps_waits_for(waits, file):
    waits.heard(Left("worker-1", LOST), 2)
    look(waits, *range(3, 12))
    assert written(file) == []
    train(waits, 13)
    waits.begin_attempt()
    waits.heard(Left("worker-1", LOST), 20)
    look(waits, *range(21, 27))
    assert written(file) == [("waiting", "worker-1", 5)]


def test_a_step_that_is_reported_again_does_not_count(waits, file):
    train(waits, 1)
    waits.heard(Left("worker-1", LOST), 1)
    for second in range(2, 9):
        waits.reported("worker-0", step(1), second)
        waits.look(second)
    assert written(file) == [("waiting", "worker-1", 5)]


@pytest.mark.parametrize("event", [Left("worker-1", DONE), Left("evaluator-0", LOST),
                                   Silent("evaluator-0", 10.0), Joined("worker-1")])  # fmt: skip
def test_training_does_not_wait_for_an_evaluator_or_a_finished_task(waits, file, event):
    train(waits, 0)
    waits.heard(event, 1)
    look(waits, *range(2, 20))
    assert written(file) == []


def test_no_steps_are_expected_during_validation_and_in_a_new_attempt(waits, file):
    train(waits, 0)
    waits.heard(Left("worker-1", LOST), 1)
    waits.reported("worker-0", Phase(name="validation"), 2)
    look(waits, *range(3, 12))
    assert written(file) == []
    waits.begin_attempt()
    look(waits, *range(12, 20))
    assert written(file) == []


def test_a_task_that_was_asked_to_start_again_is_not_lost(waits, file):
    train(waits, 1, 2)
    waits.asked(frozenset({"worker-1"}))
    waits.begin_attempt()
    waits.heard(Left("worker-1", FAILED), 3)
    assert waits.for_task
    look(waits, *range(4, 20))
    waits.heard(Joined("worker-1"), 20)
    train(waits, 21)
    assert not written(file)
    waits.heard(Left("worker-1", FAILED), 22)
    look(waits, *range(23, 30))
    assert written(file) == [("waiting", "worker-1", 5)]


def test_training_does_not_wait_for_a_task_that_is_back_while_another_is_away(waits, file):
    """Each worker of an all-reduce fails because of the one that was killed."""
    train(waits, 0)
    waits.heard(Left("worker-2", LOST), 1)
    waits.begin_attempt()
    waits.heard(Left("worker-1", FAILED), 3)
    waits.heard(Joined("worker-1"), 6)
    look(waits, *range(7, 20))
    assert written(file) == []


def test_training_waits_for_a_task_until_it_is_back_or_a_step_is_made_without_it(waits):
    """A task that is only silent may be alive: a step that it lost would hang for ever."""
    assert not waits.for_task
    waits.heard(Silent("data_worker-0", 10.0), 1)
    assert not waits.for_task
    waits.heard(Left("data_worker-0", LOST), 1)
    assert waits.for_task
    waits.heard(Joined("data_worker-0"), 40)
    assert not waits.for_task
    waits.heard(Left("data_worker-0", LOST), 50)
    train(waits, 60, first=100)
    assert not waits.for_task
    waits.heard(Left("evaluator-0", LOST), 70)
    assert not waits.for_task


def test_a_worker_that_has_ended_is_remembered_also_in_the_next_attempt(waits):
    waits.heard(Left("evaluator-0", DONE), 0)
    assert not waits.others_have_ended
    waits.heard(Left("worker-1", DONE), 1)
    waits.begin_attempt()
    assert waits.others_have_ended
    waits.heard(Joined("worker-1"), 2)
    assert not waits.others_have_ended
