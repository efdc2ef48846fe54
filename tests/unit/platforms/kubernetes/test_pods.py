"""Records of Jobs and pods become the kit's containers and events."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit import labels
from cluster_kit.platforms.kubernetes.kubernetes_pods import (
    INDEX,
    Told,
    by_task,
    container_of,
    exit_code,
    has_run,
    taken_away,
    waits_for,
)

JOB: dict[str, Any] = {
    "metadata": {
        "name": "ck-demo-worker",
        "creationTimestamp": "2026-11-22T10:00:00Z",
        "labels": {labels.CLUSTER: "demo", labels.ROLE: "worker", labels.LEADER: "true"},
        "annotations": {"cluster-kit.output": "/home/you/runs/demo/1/output"},
    },
    "spec": {"completions": 2},
}
RUNS = {"running": {"startedAt": "2026-11-22T10:00:05Z"}}


def ended(code: int, reason: str = "Error") -> dict[str, Any]:
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": "2026-11-22T10:00:05Z",
            "finishedAt": "2026-11-22T10:01:00Z",
        }
    }


def pod(name: str, state: dict[str, Any] | None = None, index: int = 1, **status: Any) -> Any:
    marks = {labels.ROLE: "worker", "batch.kubernetes.io/job-name": "ck-demo-worker"}
    metadata = {"name": name, "labels": marks, "annotations": {INDEX: str(index)}}
    metadata["creationTimestamp"] = f"2026-11-22T10:00:0{name[-1]}Z"
    over = bool(state and "terminated" in state)
    made = {"phase": "Failed" if over else "Running", **status}
    if state is not None:
        made["containerStatuses"] = [{"name": "task", "state": state}]
    return {"metadata": metadata, "status": made}


def test_a_running_pod_is_a_running_container() -> None:
    found = container_of(JOB, 1, [pod("a-1", RUNS, podIP="10.1.2.3")])
    assert (found.name, found.state, found.ip, found.exit_code) == (
        "worker-1",
        "running",
        "10.1.2.3",
        None,
    )
    assert found.output == "/home/you/runs/demo/1/output"
    assert not found.leader
    assert container_of(JOB, 0, []).leader and container_of(JOB, 0, []).state == "created"


def test_a_pod_that_replaces_a_failed_one_is_a_restart() -> None:
    first, second = pod("a-1", ended(1)), pod("a-2")
    found = container_of(JOB, 1, [first, second])
    assert (found.state, found.exit_code, found.restarts) == ("restarting", 1, 1)
    found = container_of(JOB, 1, [first, pod("a-2", RUNS)])
    assert (found.state, found.exit_code, found.restarts) == ("running", None, 1)
    assert container_of(JOB, 1, [pod("a-1", ended(137, "OOMKilled"))]).oom
    assert list(by_task([second, first])) == ["ck-demo-worker/1"]
    assert by_task([second, first])["ck-demo-worker/1"] == [first, second]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({"phase": "Failed", "reason": "Evicted", "message": "no room"}, "Evicted: no room"),
        (
            {
                "phase": "Running",
                "conditions": [
                    {"type": "DisruptionTarget", "status": "True", "reason": "Preempted",
                     "message": "by another"}
                ],
            },
            "Preempted: by another",
        ),
    ],
)  # fmt: skip
def test_an_evicted_pod_has_a_reason(status: dict[str, Any], message: str) -> None:
    gone = pod("a-1", **status)
    assert taken_away(gone) == message
    assert exit_code(gone) == 137
    assert container_of(JOB, 1, [gone]).taken_away == message


def test_reasons_why_a_pod_does_not_start() -> None:
    pulls = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    assert waits_for(pod("a-1", pulls)) == ("ErrImagePull", "not found")
    assert waits_for(pod("a-1", {"waiting": {"reason": "ContainerCreating"}})) == ("", "")
    room = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}
    assert waits_for(pod("a-1", conditions=[room])) == ("Unschedulable", "no")


def test_a_pod_that_its_node_refused_has_never_run() -> None:
    unable = pod("a-1", ended(128, "StartError"))
    unable["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = "no such file"
    assert waits_for(unable) == ("StartError", "no such file")
    assert not has_run(unable) and exit_code(unable) == 128
    assert [event.action for event in Told().events([unable], 1.0)] == ["die"]
    full = pod("a-1", phase="Failed", reason="OutOfcpu", message="3 asked, 2 left")
    assert waits_for(full) == ("OutOfcpu", "3 asked, 2 left") and not has_run(full)
    evicted = pod("a-1", ended(137), phase="Failed", reason="Evicted", message="no room")
    assert has_run(evicted) and waits_for(evicted) == ("", "")


def test_a_job_held_by_a_queue_waits_and_a_stopped_one_has_ended() -> None:
    held = {**JOB, "spec": {"completions": 2, "suspend": True}}
    assert container_of(held, 1, []).state == "created"
    metadata = {**JOB["metadata"], "annotations": {"cluster-kit.stopped": "true"}}
    found = container_of({**held, "metadata": metadata}, 1, [])
    assert (found.state, found.exit_code) == ("exited", 143)


def test_each_start_and_end_is_reported_once_and_a_deleted_pod_has_ended() -> None:
    told = Told()
    assert [e.action for e in told.events([pod("a-1", RUNS)], 1.0)] == ["start"]
    assert list(told.events([pod("a-1", RUNS)], 1.0)) == []
    both = [pod("a-1", ended(1)), pod("a-2", RUNS)]
    assert [(e.action, e.exit_code) for e in told.events(both, 2.0)] == [
        ("die", 1),
        ("start", None),
    ]
    (event,) = told.events([pod("a-1", ended(1))], 2e9)
    assert (event.action, event.task, event.time, event.exit_code) == ("die", "worker-1", 2e9, 143)
    assert list(told.events([], 2e9)) == []


def test_a_pod_that_is_deleted_in_its_first_second_ends_after_its_start() -> None:
    """Kubernetes' times are whole seconds, of which a start is the end."""
    told = Told()
    (start,) = told.events([pod("a-1", RUNS)], 0.0)
    (end,) = told.events([], start.time - 0.5)
    assert (start.action, end.action, end.time) == ("start", "die", start.time)
