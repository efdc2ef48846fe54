"""Which tasks have never run on a swarm, and the messages about them."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.platforms.swarm.swarm_tasks import has_run, refusals, with_lost
from tests.unit.platforms.swarm.records import task

UNABLE = task(1, "failed", 2, code=127, err="starting container failed", message="starting")
DOWN = {"ID": "n1", "Description": {"Hostname": "big"}, "Status": {"State": "down"}}


def test_the_reason_why_a_task_has_not_started_names_its_node() -> None:
    message = "No such image: demo:1"
    assert refusals([task(1, "rejected", 2, err=message)], {"n1": "big-one"}) == {
        "worker-0": f"{message} (node big-one)"
    }
    assert refusals([task(1, "failed", 2, code=1, err="task: non-zero exit (1)")], {}) == {}
    tried_again = [task(1, "running", 2), task(3, "rejected", 4, err=message)]
    assert refusals(tried_again, {}) == {}, "it has run: that is a crash, not a start"


def test_a_container_that_could_not_be_started_is_reported() -> None:
    assert refusals([UNABLE], {"n1": "big"}) == {"worker-0": "starting container failed (node big)"}
    assert refusals([UNABLE, task(3, "running", 4)], {}) == {}


def test_a_node_that_went_down_before_the_start_is_reported() -> None:
    lost = with_lost([task(1, "preparing", 1)], [DOWN])
    assert refusals(lost, {"n1": "big"}) == {
        "worker-0": "the node went down before it had started it (node big)"
    }


@pytest.mark.parametrize(
    ("group", "ran"),
    [
        ([task(1, "preparing", 1)], False),
        ([task(1, "rejected", 1)], False),
        ([UNABLE], False),
        ([UNABLE, task(2, "running", 2)], True),
        ([task(1, "failed", 1, code=1, message="started")], True),
        ([task(1, "complete", 1, code=0)], True),
        ([task(1, "shutdown", 1, code=143)], True),
        ([task(1, "shutdown", 1)], True),
        ([{**task(1, "shutdown", 1), "Status": {"State": "shutdown", "ContainerStatus":
           {"ContainerID": ""}}}], False),
        (with_lost([task(1, "running", 1)], [DOWN]), True),
        (with_lost([task(1, "preparing", 1)], [DOWN]), False),
    ],
)  # fmt: skip
def test_which_tasks_have_run(group: list[dict[str, Any]], ran: bool) -> None:
    assert has_run(group) is ran
