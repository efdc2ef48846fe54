"""Which task leads, which run servers and which are restarted, in the compose file."""

from __future__ import annotations

from typing import Any

import pytest

from tests.make import cluster
from tests.unit.platforms.compose.parsed import service, services


def test_docker_restarts_all_tasks_except_the_leader() -> None:
    made = cluster(retries=2, evaluator=1)
    assert service(made, "chief-0")["restart"] == "no"
    assert service(made, "ps-0")["restart"] == "on-failure:2"
    assert service(cluster(retries=0), "ps-0")["restart"] == "no"


def test_without_a_chief_worker_0_leads_and_all_workers_run_the_program() -> None:
    made = cluster(chief=0, ps=0, worker=2)
    leads = {name: s["labels"]["cluster-kit.leader"] for name, s in services(made).items()}
    assert leads == {"worker-0": "true", "worker-1": "false"}
    assert service(made, "worker-1")["command"] == ["run", "classifier"]
    assert service(made, "worker-1")["environment"]["CLUSTER_KIT_LEADER"] == "worker-0"


def test_under_a_chief_ps_and_workers_run_servers() -> None:
    commands = {name: s["command"][0] for name, s in services(cluster(evaluator=1)).items()}
    assert commands["chief-0"] == commands["evaluator-0"] == "run"
    assert commands["worker-0"] == commands["ps-1"] == "serve"


ALL_TASKS = {"style": "all-tasks", "ps": 1}


@pytest.mark.parametrize(
    ("keys", "leader", "serve"),
    [
        ({}, "chief-0", "worker-0,worker-1,ps-0,ps-1"),
        ({"style": "coordinator", "ps": 1}, "chief-0", "worker-0,worker-1,ps-0"),
        ({"chief": 0, "ps": 0}, "worker-0", ""),
        ({**ALL_TASKS}, "chief-0", "ps-0"),
        ({**ALL_TASKS, "chief": 0}, "worker-0", "ps-0"),
        ({**ALL_TASKS, "ps_runs": "program"}, "chief-0", ""),
        ({**ALL_TASKS, "chief_job": "master"}, "chief-0", "ps-0"),
        ({"style": "all-tasks", "ps": 0}, "chief-0", ""),
    ],
    ids=str,
)
def test_the_style_decides_which_task_leads_and_which_run_servers(
    keys: dict[str, Any], leader: str, serve: str
) -> None:
    found = services(cluster(evaluator=1, **keys))
    for name, one in found.items():
        environment = one["environment"]
        assert environment["CLUSTER_KIT_LEADER"] == leader
        assert environment["CLUSTER_KIT_TASK"] == name
        assert environment["CLUSTER_KIT_SERVERS"] == ("" if name == "evaluator-0" else serve)
        assert one["command"][0] == ("serve" if name in serve.split(",") else "run")
        assert one["labels"]["cluster-kit.leader"] == str(name == leader).lower()
        assert (one["restart"] == "no") == (name == leader)
