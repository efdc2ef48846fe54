"""Tasks whose own steps are known: each makes its own, and the others do not wait for it."""

from __future__ import annotations

import pytest
from made_up_jobs import ONE, THREE, TWO, Job, Play, Second, steps

from trainer.agent.straggler_rule import CPU, MEMORY, UNKNOWN
from trainer.agent.usage import Usage

LIMITED = {TWO: Usage(cpus=0.2)}
THROTTLED = {ONE: Second(10), TWO: Second(3, cpus=0.2, throttled=0.8)}


def test_a_slow_task_is_named_after_twenty_seconds_and_only_once():
    job = Job(limits=LIMITED)
    job.run(60, THROTTLED)
    [(at, found)] = job.found
    assert 20 <= at <= 22
    assert (found.task, found.cause, found.limit, found.seconds) == (TWO, CPU, 0.2, 20)
    assert found.steps_per_s == pytest.approx(3, abs=0.2)
    assert found.others_steps_per_s == pytest.approx(10, abs=0.2)
    assert found.share == pytest.approx(3 / 13, abs=0.01)


def test_a_straggler_that_recovers_is_reported_with_its_share():
    job = Job()
    job.run(40, steps(10, 3))
    job.run(60, steps(10, 10))
    [(at, over)] = job.ended
    assert len(job.begun) == 1 and 45 <= at <= 61
    assert over.task == TWO and over.seconds == pytest.approx(at, abs=3)
    assert 0.23 < over.share < 0.4


def test_a_straggler_may_last_to_the_end_of_the_attempt():
    job = Job()
    job.run(50, steps(10, 1))
    [over] = job.rule.end(job.now)
    assert over.seconds == pytest.approx(49, abs=2)
    assert over.share == pytest.approx(1 / 11, abs=0.01)
    assert job.rule.end(job.now) == []


def test_the_time_counts_from_when_the_task_became_slow():
    job = Job()
    job.run(100, steps(10, 10))
    job.run(40, steps(10, 2))
    [(at, found)] = job.found
    assert 119 <= at <= 126 and found.task == TWO


@pytest.mark.parametrize(
    ("rates", "slow"),
    [
        ((10, 9, 4), [THREE]),
        ((10, 3, 3), []),
        ((10, 10, 10), []),
        ((10, 6, 10), []),
        ((10, 10, 2), [THREE]),
        ((1, 1, 0.25), [THREE]),
    ],
    ids=["slowest of three", "most are slow", "alike", "less than twice", "a third", "slow steps"],
)
def test_a_task_is_compared_with_the_median_of_the_others(rates, slow):
    job = Job((ONE, TWO, THREE))
    job.run(120, steps(*rates))
    assert [found.task for _, found in job.found] == slow


def test_two_of_five_are_named():
    job = Job(tuple(f"worker-{index}" for index in range(5)))
    job.run(40, steps(10, 10, 2, 2, 10))
    assert [found.task for _, found in job.found] == ["worker-2", "worker-3"]


def test_only_tasks_with_the_same_work_are_compared():
    job = Job((ONE, TWO), ("ps-0", "ps-1"))
    job.run(60, {**steps(10, 10), "ps-0": Second(1), "ps-1": Second(1)})
    assert job.found == []


def evaluates(job: Job) -> None:
    """Between epochs no task makes steps for a long time."""
    for _ in range(4):
        job.run(10, steps(10, 10))
        job.run(25, steps(0, 0))


def saves(job: Job) -> None:
    """Only the chief saves, for longer than 20 s, while the others continue."""
    job.run(60, steps(10, 10))
    job.run(28, steps(0, 10))
    job.run(100, steps(10, 10))


def saves_often(job: Job) -> None:
    for _ in range(15):
        job.run(4, steps(10, 10))
        job.run(3, steps(0, 10))


def traces(job: Job) -> None:
    """The first step of one task comes a minute after the other's; its second step takes long,
    too."""
    job.run(60, steps(10, None))
    job.run(15, steps(10, 0))
    job.run(60, steps(10, 10))


def comes_back(job: Job) -> None:
    """A task is killed, restarted, and traces its functions again."""
    job.run(60, steps(10, 10))
    job.run(5, steps(10, None))
    job.started_again(TWO)
    job.run(30, steps(10, None))
    job.run(60, steps(10, 10))


def is_done(job: Job) -> None:
    """One task has finished its share; the other continues."""
    job.run(60, steps(10, 10))
    job.run(100, steps(10, 0))


def is_silent(job: Job) -> None:
    job.run(60, steps(10, 10))
    job.run(10, steps(10, None))
    job.started_again(TWO)
    job.run(60, steps(10, None))


def is_starved(job: Job) -> None:
    """There was no observation for half a minute."""
    job.run(60, steps(10, 10))
    job.now += 30
    job.run(19, steps(10, 4))
    job.run(30, steps(10, 10))


def changes_places(job: Job) -> None:
    """No task is slow for 20 s without a break."""
    for _ in range(6):
        job.run(14, steps(10, 2))
        job.run(14, steps(2, 10))


@pytest.mark.parametrize(
    "play",
    [evaluates, saves, saves_often, traces, comes_back, is_done, is_silent, is_starved,
     changes_places],
)  # fmt: skip
def test_cases_that_are_no_straggler(play: Play):
    job = Job()
    play(job)
    assert job.found == []


def test_a_restarted_straggler_is_none_until_it_is_detected_again():
    job = Job()
    job.run(30, steps(10, 2))
    job.started_again(TWO)
    assert [type(found).__name__ for _, found in job.found] == ["Straggling", "Straggled"]
    assert job.ended[0][1].share == pytest.approx(2 / 12, abs=0.02)
    job.run(15, steps(10, 2))
    assert len(job.found) == 2
    job.run(15, steps(10, 2))
    assert len(job.found) == 3


def test_a_pause_of_all_tasks_ends_nothing():
    job = Job()
    job.run(30, steps(10, 2))
    job.run(60, steps(0, 0))
    assert len(job.found) == 1


def test_the_cause_is_named_if_it_can_be_found():
    causes = {}
    for cpus, throttled, faults in ((0.2, 0.8, 0), (0.2, 0.02, 0), (0.2, 0.0, 500)):
        job = Job(limits=LIMITED)
        slow = Second(2, cpus=cpus, throttled=throttled, faults=faults)
        job.run(30, {ONE: Second(10), TWO: slow})
        causes[throttled, faults] = job.found[0][1].cause
    assert causes == {(0.8, 0): CPU, (0.02, 0): UNKNOWN, (0.0, 500): MEMORY}
