"""What counts as progress, and how long a job may be without any."""

from __future__ import annotations

import pytest

from trainer.agent.supervisor.stall import LEAST_S, RECOVERY_S, TIMES, UNREPORTED_S, Progression
from trainer.agent.usage import Usage
from trainer.contract.events import decode


class Job:
    """A simulated job, second by second."""

    def __init__(self, limit_s: float | None = None) -> None:
        self.now = 1000.0
        self.made = Progression(limit_s, self.now)

    def pass_by(self, seconds: int) -> float:
        """Let seconds pass; returns how long the job has made no progress, if that is too long."""
        for _ in range(seconds):
            self.now += 1.0
            self.made.look(self.now)
        return self.made.standing_s()

    def steps(self, *numbers: int, every: int = 1) -> None:
        for number in numbers:
            self.pass_by(every)
            self.made.reported("chief-0", decode("step", {"step": number}))


def test_a_job_that_reports_steps_may_stand_still_for_half_a_minute():
    job = Job()
    job.steps(1, 9, 17, 30)
    assert job.pass_by(int(LEAST_S)) == 0
    assert job.pass_by(1) == pytest.approx(LEAST_S + 1)


def test_a_job_may_stand_still_longer_while_a_lost_task_is_away():
    """All data workers at once: on a busy machine they need half a minute to start again."""
    job = Job()
    job.steps(1, 9, 17, 30)
    job.made.waits_for_task = True
    assert job.pass_by(int(RECOVERY_S)) == 0
    assert job.pass_by(1) > 0


def test_a_leader_may_work_alone_after_the_others_have_ended():
    """It evaluates or saves, and reports no steps: its CPU time counts then."""
    job = Job()
    job.steps(1, 9, 17, 30)
    job.made.works_alone = True
    assert job.pass_by(int(UNREPORTED_S)) == 0
    for look in range(100):
        job.pass_by(5)
        job.made.used(job.now, {"worker-0": Usage(look * 2.5, 0)})
    assert job.made.standing_s() == 0
    assert job.pass_by(int(UNREPORTED_S) + 1) > 0


def test_a_job_with_slow_steps_may_stand_still_for_twenty_of_them():
    job = Job()
    job.steps(1, 2, 3, 4, 5, every=10)
    assert job.made.limit_s == pytest.approx(TIMES * 10)
    assert job.pass_by(TIMES * 10) == 0
    assert job.pass_by(1) > 0


def test_the_same_step_again_is_no_progress():
    job = Job()
    job.steps(1, 2, 3, 4)
    job.steps(*[4] * 32)
    assert job.made.standing_s() == pytest.approx(32)


def test_a_step_back_after_a_restart_is_progress():
    job = Job()
    job.steps(50, 60, 70, 80)
    job.pass_by(20)
    job.steps(61)
    assert job.pass_by(29) == 0


@pytest.mark.parametrize("event", ["silent", "heard", "retry", "devices", "failure", "end"])
def test_reports_of_supervisors_are_no_progress(event):
    job = Job(20.0)
    job.pass_by(15)
    job.made.reported("chief-0", decode(event, {"of": "worker-1"}))
    assert job.pass_by(6) > 0


@pytest.mark.parametrize("event", ["start", "ready"])
def test_a_restarted_task_gives_all_tasks_time_until_the_next_step(event):
    job = Job()
    job.steps(1, 2, 3, 4)
    job.pass_by(20)
    job.made.reported("worker-1", decode(event, {}))
    assert job.pass_by(int(RECOVERY_S)) == 0
    job.steps(5)
    assert job.pass_by(int(LEAST_S) + 1) > 0


def test_events_of_the_users_program_and_checkpoints_are_progress():
    job = Job(20.0)
    for progress in (lambda: job.made.reported("worker-1", decode("mine", {})), job.made.wrote):
        job.pass_by(15)
        progress()
    assert job.pass_by(19) == 0
    assert job.pass_by(2) > 0


def test_before_enough_steps_and_in_phases_without_steps_there_is_more_time():
    job = Job()
    job.steps(1, 2)
    assert job.made.limit_s == UNREPORTED_S
    job.steps(3, 4, 5)
    assert job.made.limit_s == LEAST_S
    job.made.reported("chief-0", decode("phase", {"name": "finishing"}))
    assert job.made.limit_s == UNREPORTED_S
    job.made.reported("chief-0", decode("phase", {"name": "training"}))
    assert job.made.limit_s == LEAST_S


def use(job: Job, cores: float, bytes_per_s: int, seconds: int) -> float:
    """One of three tasks computes with this number of cores; all send this number of bytes."""
    for second in range(0, seconds, 5):
        busy, idle = Usage(second * cores, second * bytes_per_s), Usage(0, second * bytes_per_s)
        job.made.used(job.now, {"chief-0": busy, "ps-0": idle, "worker-0": idle})
        job.pass_by(5)
    return job.made.standing_s()


@pytest.mark.parametrize(
    ("cores", "bytes_per_s", "stands"),
    [(0.5, 0, False), (0.0, 500_000, False), (0.01, 1_200, True)],
)
def test_a_job_that_reports_nothing_is_judged_by_what_it_uses(cores, bytes_per_s, stands):
    assert (use(Job(), cores, bytes_per_s, 400) > 0) == stands


def test_a_restarted_task_has_used_less_than_before():
    job = Job()
    job.made.used(job.now, {"worker-0": Usage(500.0, 10**9)})
    job.pass_by(299)
    job.made.used(job.now, {"worker-0": Usage(1.0, 10**3), "worker-1": Usage(9.0, 10**6)})
    assert job.pass_by(2) > 0


def test_a_job_that_reports_steps_is_not_judged_by_what_it_uses():
    job = Job()
    job.steps(1, 2, 3, 4)
    assert use(job, 1.0, 10**6, 60) > 0


def test_a_limit_in_the_manifest_applies_from_the_beginning():
    job = Job(7.0)
    assert job.pass_by(7) == 0
    assert job.pass_by(1) == pytest.approx(8)


def test_steps_that_the_kit_has_counted_are_progress_but_set_no_limit():
    job = Job()
    for step in (1, 2, 3, 4, 5):
        job.pass_by(1)
        job.made.reported("chief-0", decode("step", {"step": step, "counted": True}))
        job.made.reported("chief-0", decode("epoch", {"epoch": step, "counted": True}))
    assert job.made.limit_s == UNREPORTED_S
    assert job.pass_by(int(UNREPORTED_S)) == 0
    assert job.pass_by(1) > 0
