"""The pods of a Kubernetes Job, and their states as time passes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

INDEX = "batch.kubernetes.io/job-completion-index"
Object = dict[str, Any]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Pods:
    """How pods behave: tasks run for `lasts_s`, then end with `codes`."""

    lasts_s: float = 0.3
    lasts: dict[str, float] = field(default_factory=dict)
    """Tasks that run for a different time."""
    codes: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, tuple[str, str]] = field(default_factory=dict)
    """(reason, message) of tasks that never start."""
    evicted: dict[str, str] = field(default_factory=dict)
    """Tasks that are evicted at their end, and the kubelet's message."""

    def status_of(self, task: str, age_s: float, began: str) -> Object:
        if task in self.waiting:
            reason, message = self.waiting[task]
            if reason == "Unschedulable":
                one = {"type": "PodScheduled", "status": "False", "reason": reason}
                return {"phase": "Pending", "conditions": [one | {"message": message}]}
            state = {"waiting": {"reason": reason, "message": message}}
            return {"phase": "Pending", "containerStatuses": [{"name": "task", "state": state}]}
        if age_s < self.lasts.get(task, self.lasts_s):
            state = {"running": {"startedAt": began}}
            return {
                "phase": "Running",
                "podIP": "10.1.2.3",
                "containerStatuses": [{"name": "task", "state": state}],
            }
        code = self.codes.get(task, 137 if task in self.evicted else 0)
        ended = {"exitCode": code, "startedAt": began, "finishedAt": now(), "reason": "Completed"}
        state = {"terminated": ended}
        status = {"phase": "Failed" if code else "Succeeded"}
        if task in self.evicted:
            status |= {"reason": "Evicted", "message": self.evicted[task]}
        return {**status, "containerStatuses": [{"name": "task", "state": state}]}


def made_of(job: Object) -> Iterator[Object]:
    """Returns the pods that a Job's controller creates."""
    name, template = job["metadata"]["name"], job["spec"]["template"]
    for index in range(job["spec"]["completions"]):
        marks = {**template["metadata"]["labels"], INDEX: str(index)}
        marks["batch.kubernetes.io/job-name"] = name
        metadata = {"name": f"{name}-{index}-abcde", "labels": marks}
        metadata |= {"annotations": {INDEX: str(index)}, "creationTimestamp": now()}
        pod = {
            "kind": "Pod",
            "metadata": metadata,
            "spec": template["spec"],
            "since": time.monotonic(),
        }
        yield pod | {"status": {"phase": "Pending"}}


def job_of(one: Object) -> str:
    return str(one["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name", ""))


def task_of(pod: Object) -> str:
    marks = pod["metadata"]["labels"]
    return f"{marks['cluster-kit.role']}-{marks[INDEX]}"
