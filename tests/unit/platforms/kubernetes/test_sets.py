"""A JobSet's Jobs: existing ones, those to come, and those that its end has deleted."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit import labels
from cluster_kit.platforms.kubernetes.kubernetes_pods import (
    IN_SET,
    Ended,
    container_of,
    set_is_over,
    with_sets,
)
from tests.unit.platforms.kubernetes.test_pods import RUNS, ended, pod

MARKS = {labels.CLUSTER: "demo", labels.ROLE: "worker", labels.LEADER: "false"}
MADE = "2026-11-22T10:00:00Z"


def a_set(how: str = "", status: str = "True", **notes: str) -> dict[str, Any]:
    template = {"metadata": {"labels": MARKS}, "spec": {"completions": 2}}
    conditions = [{"type": how, "status": status}] if how else []
    return {
        "metadata": {"name": "ck-demo", "creationTimestamp": MADE, "annotations": notes},
        "spec": {"replicatedJobs": [{"name": "worker", "replicas": 1, "template": template}]},
        "status": {"conditions": conditions},
    }


def job(name: str = "ck-demo-worker-0") -> dict[str, Any]:
    metadata = {"name": name, "creationTimestamp": MADE, "labels": MARKS, "uid": "there"}
    return {"metadata": metadata, "spec": {"completions": 2}}


@pytest.mark.parametrize(
    ("made", "over"),
    [
        (a_set(), False),
        (a_set("Suspended"), False),
        (a_set("Failed", "False"), False),
        (a_set("Failed"), True),
        (a_set("Completed"), True),
        (a_set(**{"cluster-kit.stopped": "true"}), True),
    ],
    ids=["new", "held back", "not failed", "failed", "completed", "stopped"],
)
def test_tasks_without_a_pod_wait_until_the_set_has_ended(made: dict[str, Any], over: bool) -> None:
    assert set_is_over(made) is over
    for jobs in ([], [job()]):
        (found,) = with_sets(jobs, [made])
        assert found["metadata"]["name"] == "ck-demo-worker-0"
        one = container_of(found, 1, [])
        assert (one.state, one.exit_code) == (("exited", 143) if over else ("created", None))
        assert container_of(found, 1, [pod("a-1", ended(3))]).exit_code == 3


def test_an_existing_job_is_used_and_others_are_kept() -> None:
    other = job("ck-other-chief")
    assert with_sets([other, job()], [a_set()]) == [other, job()]
    assert with_sets([other], []) == [other]


class Kept(Ended):
    def __init__(self) -> None:
        self._kept, self._ended, self.said = {}, {}, ["1 a"]

    def _read(self, pod: str, since: float | None) -> list[str]:
        return [f"{line} of {pod}" for line in self.said]


def in_set(one: dict[str, Any], **metadata: str) -> dict[str, Any]:
    marks = {**one["metadata"]["labels"], IN_SET: "ck-demo", labels.CLUSTER: "demo"}
    return {**one, "metadata": {**one["metadata"], "labels": marks, **metadata}}


def test_a_pod_that_has_ended_is_kept_with_its_log() -> None:
    kept, over, on = Kept(), in_set(pod("a-1", ended(1))), in_set(pod("a-2", RUNS, index=0))
    kept._keep([over, on])
    assert kept._kept == {"ck-demo-worker/1": ["1 a of a-1"]}
    assert kept._with_ended([over, on], "demo", "") == [over, on]
    assert kept._with_ended([], "demo", "") == [over]
    assert kept._with_ended([], "other", "") == kept._with_ended([], "demo", "run") == []
    kept._forget("demo")
    assert kept._with_ended([], "demo", "") == []


def test_the_log_of_a_pod_that_is_being_deleted_is_kept() -> None:
    kept = Kept()
    going = in_set(pod("a-1", RUNS), deletionTimestamp=MADE)
    kept._keep([going])
    kept.said.append("2 b")
    kept._keep([going])
    assert kept._kept == {"ck-demo-worker/1": ["1 a of a-1", "2 b of a-1"]}
    assert kept._with_ended([], "demo", "") == [], "it was stopped: its end is told as one"


def test_all_starts_of_a_task_are_kept_in_order() -> None:
    kept, first, second = Kept(), in_set(pod("a-1", ended(1))), in_set(pod("a-2", ended(0)))
    kept._keep([first])
    kept._keep([second, first])
    assert kept._kept == {"ck-demo-worker/1": ["1 a of a-1", "1 a of a-2"]}
    assert [one["metadata"]["name"] for one in kept._with_ended([], "demo", "")] == ["a-1", "a-2"]


def test_pods_without_a_set_are_only_read_from_the_cluster() -> None:
    kept = Kept()
    kept._keep([pod("a-1", ended(1))])
    assert (kept._kept, kept._ended) == ({}, {})
