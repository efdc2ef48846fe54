"""`--debug`: the changes to a cluster whose program waits for a debugger, and its errors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.plan.portable import PATIENCE_S, debugged
from cluster_kit.platforms.container import task_containers
from cluster_kit.resolved import Mount, Port
from tests.make import cluster

WEEK = PATIENCE_S


def test_one_task_has_the_debugger_and_no_deadline_ends_the_job() -> None:
    usual = cluster(evaluator=1)
    made = debugged(usual, "chief-0", "/cache/debugpy")
    chief, others = made.leader, made.tasks[1:]
    assert (chief.debug, chief.ports) == (5678, (Port(5678, 5678),))
    assert chief.mounts == (Mount("/cache/debugpy", "/debugger"),)
    assert others == usual.tasks[1:]
    limits = made.deadlines
    assert (limits.job, limits.evaluator_grace, limits.silent, limits.stall) == (WEEK, WEEK, 0, 0)
    assert limits.start == usual.deadlines.start
    given = {
        spec.hostname: spec.variables.get("CLUSTER_KIT_DEBUG") for spec in task_containers(made)
    }
    assert given.pop("chief-0") == "5678"
    assert set(given.values()) == {None}


def test_the_port_on_the_host_can_be_chosen() -> None:
    made = debugged(cluster(evaluator=1), "evaluator-0:15678", "/d")
    (task,) = made.evaluators
    assert (task.debug, task.ports) == (15678, (Port(15678, 5678),))


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        ("cheif-0", "task cheif-0 was not found", "did you mean `chief-0`"),
        ("", "task  was not found", "there are: chief-0"),
        ("ps-0", "ps-0 runs a TensorFlow server, no program", "these run one: chief-0"),
        ("worker-1:5678", "worker-1 runs a TensorFlow server", "no Python debugger can stop"),
        ("chief-0:", "the port must be 1 to 65535", "--debug chief-0"),
        ("chief-0:0", "the port must be 1 to 65535", "--debug chief-0"),
        ("chief-0:65536", "the port must be 1 to 65535", "--debug chief-0"),
        ("chief-0:x", "the port must be 1 to 65535", "--debug chief-0"),
        ("chief-0:²", "the port must be 1 to 65535", "--debug chief-0"),
    ],
)
def test_tasks_that_cannot_be_debugged_are_reported(asked: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        debugged(cluster(), asked, "/d")
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_a_port_that_is_already_published_is_reported() -> None:
    usual = cluster()
    worker = replace(usual.tasks[-1], ports=(Port(5678, 80),))
    taken = replace(usual, tasks=(*usual.tasks[:-1], worker))
    with pytest.raises(UsageError, match=f"5678 of this host is published for {worker.name}"):
        debugged(taken, "chief-0", "/d")
    debugged(taken, "chief-0:5679", "/d")
    chief = replace(usual.leader, ports=(Port(9000, 5678),))
    with pytest.raises(UsageError, match="publishes its port 5678 already"):
        debugged(replace(usual, tasks=(chief, *usual.tasks[1:])), "chief-0:9001", "/d")
    with pytest.raises(UsageError, match="an internal network publishes none"):
        debugged(replace(usual, internal=True), "chief-0", "/d")
