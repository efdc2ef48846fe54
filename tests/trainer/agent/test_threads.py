"""A task gets as many threads for each op as its part of the machine has CPUs."""

import pytest

from trainer.agent.errors import ContractError
from trainer.agent.task_environment import THREADS, set_threads


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
