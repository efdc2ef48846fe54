"""Tasks that make the same steps, or whose own steps are unknown: only limits show the slow one."""

from __future__ import annotations

import pytest
from made_up_jobs import ONE, TWO, Job, Second

from trainer.agent.straggler_rule import BANDWIDTH, CPU
from trainer.agent.usage import Usage

LIMITS = {ONE: Usage(), TWO: Usage(cpus=0.2)}
WAITS = Second(cpus=0.1)
THROTTLED = Second(cpus=0.19, throttled=0.7)


@pytest.mark.parametrize("own", [None, 4.0], ids=["steps unknown", "all make the same steps"])
def test_a_cpu_limit_that_only_one_task_has_reached(own):
    job = Job(limits=LIMITS)
    does = {ONE: Second(own, cpus=0.1), TWO: Second(own, cpus=0.19, throttled=0.7)}
    job.run(60, does, job_steps=4.0)
    [(at, found)] = job.found
    assert (found.task, found.cause, found.limit) == (TWO, CPU, 0.2)
    assert found.slowed == pytest.approx(1 + 0.7 / 0.19, abs=0.1)
    assert (found.steps_per_s, found.share) == (None, None)
    assert 20 <= at <= 25


def test_a_bandwidth_that_only_one_task_has_reached():
    job = Job(limits={ONE: Usage(), TWO: Usage(bandwidth=8_000_000)})
    does = {ONE: Second(cpus=0.2, sent=960_000), TWO: Second(cpus=0.2, sent=960_000)}
    job.run(60, does, job_steps=1.0)
    [(_, found)] = job.found
    assert (found.task, found.cause, found.limit) == (TWO, BANDWIDTH, 8_000_000)


BOTH_WAYS = Second(1.0, cpus=0.01, sent=480_000, received=480_000)


def test_a_bandwidth_that_is_reached_by_reading_and_sending_in_turns():
    """The others wait for it in each step, and may be nearly idle."""
    limits = {ONE: Usage(), TWO: Usage(bandwidth=8_000_000)}
    job = Job(limits=limits, in_turns=(ONE, TWO))
    job.run(60, {ONE: BOTH_WAYS, TWO: BOTH_WAYS})
    [(_, found)] = job.found
    assert (found.task, found.cause, found.limit) == (TWO, BANDWIDTH, 8_000_000)


def test_half_a_bandwidth_each_way_at_the_same_time_is_not_all_of_it():
    """As in all-reduce."""
    job = Job(limits={ONE: Usage(), TWO: Usage(bandwidth=8_000_000)})
    job.run(60, {ONE: BOTH_WAYS, TWO: BOTH_WAYS})
    assert job.found == []


def test_steps_may_take_long():
    job = Job(limits=LIMITS)
    job.run(100, {ONE: WAITS, TWO: THROTTLED}, job_steps=0.07)
    assert [found.task for _, found in job.found] == [TWO]


def test_a_straggler_is_over_when_the_limit_is_removed():
    job = Job(limits=LIMITS)
    job.run(40, {ONE: WAITS, TWO: THROTTLED}, job_steps=4.0)
    job.run(40, {ONE: Second(cpus=0.9), TWO: Second(cpus=0.15)}, job_steps=20.0)
    [(at, over)] = job.ended
    assert over.task == TWO and over.share is None and 55 <= at <= 66


def test_the_share_of_a_straggler_that_was_named_before_its_first_step():
    """It starts so slowly that the others train already: its steps count from the first one on."""
    job = Job(limits=LIMITS)
    job.run(40, {ONE: Second(10, cpus=0.1), TWO: THROTTLED})
    assert [found.task for _, found in job.found] == [TWO]
    job.run(80, {ONE: Second(10, cpus=0.1), TWO: Second(2, cpus=0.19, throttled=0.7)})
    [over] = job.rule.end(job.now)
    assert over.task == TWO and over.share == pytest.approx(2 * 80 / (10 * 120 + 2 * 80), abs=0.02)


@pytest.mark.parametrize(
    ("one", "two", "steps"),
    [
        (THROTTLED, THROTTLED, 4.0),
        (WAITS, Second(cpus=0.1, throttled=0.3), 4.0),
        (WAITS, Second(cpus=0.19, throttled=0.1), 4.0),
        (Second(cpus=0.01), THROTTLED, 4.0),
        (WAITS, Second(cpus=0.1), 4.0),
    ],
    ids=["both have reached one", "only now and then", "hardly slowed", "the other one is idle",
         "not reached"],
)  # fmt: skip
def test_cases_that_are_no_straggler(one, two, steps):
    job = Job(limits={ONE: Usage(cpus=0.2), TWO: Usage(cpus=0.2)})
    job.run(90, {ONE: one, TWO: two}, job_steps=steps)
    assert job.found == []


def test_no_straggler_is_named_while_no_steps_are_made():
    """For example, a task exports its model while the others wait and are not completely idle."""
    job = Job(limits=LIMITS)
    job.run(30, {ONE: Second(cpus=0.15), TWO: Second(cpus=0.15)}, job_steps=4.0)
    job.run(60, {ONE: WAITS, TWO: THROTTLED})
    assert job.found == []


def test_a_program_that_reports_no_steps():
    job = Job(limits=LIMITS)
    job.run(30, {ONE: WAITS, TWO: THROTTLED})
    assert [found.task for _, found in job.found] == [TWO]


def test_if_steps_are_known_and_differ_a_limit_alone_does_not_count():
    job = Job(limits=LIMITS)
    does = {ONE: Second(6, cpus=0.3), TWO: Second(4, cpus=0.19, throttled=0.7)}
    job.run(60, does)
    assert job.found == []
