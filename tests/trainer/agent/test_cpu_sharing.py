"""A task gets as many threads for each op as its part of the machine has CPUs, and is scheduled as
a batch job if its manifest asks for that."""

import os
import subprocess
import sys

import pytest

from trainer.agent.cpu_sharing import SCHEDULING, THREADS, set_scheduling, set_threads
from trainer.agent.errors import ContractError


@pytest.mark.parametrize(
    ("trainers", "cpus", "limit", "threads"),
    [
        ("2", 2, None, "1"),
        ("3", 2, None, "1"),
        ("2", 16, None, "8"),
        ("", 4, 0.4, "1"),
        ("2", 4, 1.5, "2"),
        ("2", 8, 1.5, "2"),
        ("2", 8, 6.0, "4"),
        ("", 1, 0.3, None),
        ("", 16, None, None),
        ("1", 16, None, None),
        ("", 4, 4.0, None),
    ],
)
def test_cpus_are_divided_between_trainers_and_a_limit_is_rounded_up(
    trainers, cpus, limit, threads
):
    environment = {"CLUSTER_KIT_TRAINERS": trainers}
    set_threads(environment, cpus, limit)
    assert environment.get(THREADS) == threads


def test_a_users_own_number_is_kept():
    environment = {"CLUSTER_KIT_TRAINERS": "2", THREADS: "5"}
    set_threads(environment, 2, None)
    assert environment[THREADS] == "5"


def test_an_invalid_number_of_trainers_is_named():
    with pytest.raises(ContractError, match="CLUSTER_KIT_TRAINERS"):
        set_threads({"CLUSTER_KIT_TRAINERS": "many"}, 2, None)


@pytest.mark.parametrize(
    ("wanted", "policy"),
    [("", os.SCHED_OTHER), ("normal", os.SCHED_OTHER), ("batch", os.SCHED_BATCH)],
)
def test_a_task_and_its_children_are_scheduled_as_batch_jobs_if_wanted(wanted, policy):
    code = (
        "import os, sys, subprocess; from trainer.agent.cpu_sharing import set_scheduling;"
        "set_scheduling(os.environ);"
        "subprocess.run([sys.executable, '-c', 'import os; print(os.sched_getscheduler(0))'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path), SCHEDULING: wanted},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) == policy


def test_an_unknown_policy_is_named():
    with pytest.raises(ContractError, match="CLUSTER_KIT_SCHEDULING = 'fifo': must be batch or"):
        set_scheduling({SCHEDULING: "fifo"})
