"""Pods as containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms.engine import Container, Event, seconds_of

INDEX = "batch.kubernetes.io/job-completion-index"
OUTPUT = "cluster-kit.output"
"""The annotation of a Job with the host's directory that its output is brought to."""
STOPPED_BY_KIT = "cluster-kit.stopped"
"""The annotation of a Job that the kit has suspended: a queue suspends Jobs, too."""
TAKEN = 137
"""The exit code of a pod that has none of its own, since it was evicted, or its node is gone."""
STOPPED = 143
TASK = "task"
NOT_STARTED = ("StartError", "ContainerCannotRun")
"""Why a container has ended that its node could not start."""
Record = Mapping[str, Any]


def notes_of(record: Record) -> Mapping[str, str]:
    """The annotations of a Job, a set or a pod; Kubernetes leaves the key out if it has none."""
    return record["metadata"].get("annotations") or {}


def is_stopped_by_kit(record: Record) -> bool:
    """Whether the kit has suspended a Job or a set."""
    return STOPPED_BY_KIT in notes_of(record)


def id_of(job: Record, index: int) -> str:
    """The id of a task: its Job and its index in it."""
    return f"{job['metadata']['name']}/{index}"


def output_of(job: Record) -> str:
    """The host's directory that its output is brought to; "" if there is none."""
    return str(notes_of(job).get(OUTPUT, ""))


def task_of(pod: Record) -> str:
    """The id of the task that a pod is of."""
    metadata = pod["metadata"]
    return f"{metadata['labels']['batch.kubernetes.io/job-name']}/{_index(pod)}"


def name_of(pod: Record) -> str:
    """The kit's name of its task: `worker-1`."""
    return f"{pod['metadata']['labels'][labels.ROLE]}-{_index(pod)}"


def _index(pod: Record) -> int:
    return int(notes_of(pod).get(INDEX) or pod["metadata"]["labels"].get(INDEX) or 0)


def by_task(pods: Iterable[Record]) -> dict[str, list[Record]]:
    """The pods of each task, oldest first, by its id."""
    found: dict[str, list[Record]] = {}
    for pod in sorted(pods, key=_created):
        found.setdefault(task_of(pod), []).append(pod)
    return found


def _created(pod: Record) -> tuple[float, str]:
    return seconds_of(pod["metadata"]["creationTimestamp"]), str(pod["metadata"]["name"])


def _state(pod: Record) -> Record:
    """What a pod's container does: {"running": …}, {"waiting": …}, {"terminated": …}, or {}."""
    found = pod.get("status", {}).get("containerStatuses") or ()
    state: Record = next((one["state"] for one in found if one["name"] == TASK), {})
    return state


def is_over(pod: Record) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def exit_code(pod: Record) -> int | None:
    """How it ended, None if it has not."""
    ended = _state(pod).get("terminated")
    if taken_away(pod):
        return TAKEN
    if ended is not None:
        return int(ended["exitCode"])
    return TAKEN if is_over(pod) else None


def taken_away(pod: Record) -> str:
    """Why Kubernetes has ended a pod, "" if it has not: it was evicted, its node is gone."""
    status = pod.get("status", {})
    if status.get("phase") == "Failed" and status.get("reason"):
        return f"{status['reason']}: {status.get('message', '')}".strip(": ")
    for one in status.get("conditions") or ():
        if one["type"] == "DisruptionTarget" and one["status"] == "True":
            return f"{one.get('reason', '')}: {one.get('message', '')}".strip(": ")
    return ""


def _time(text: str | None) -> float:
    """Unix seconds, rounded up: Kubernetes says when in whole seconds. -1 for no time."""
    return -1.0 if not text else seconds_of(text) + 0.999


def _refused(pod: Record) -> Record:
    """How its node ended a container that it could not start; {} if it did not."""
    ended: Record = _state(pod).get("terminated") or {}
    return ended if ended.get("reason") in NOT_STARTED else {}


def has_run(pod: Record) -> bool:
    """Whether its container runs, or has; those of a pod that its node refused never do."""
    return started(pod) > 0


def started(pod: Record) -> float:
    """When its container started; negative if it has not."""
    state = _state(pod)
    if _refused(pod):
        return -1.0
    return _time((state.get("running") or state.get("terminated") or {}).get("startedAt"))


def finished(pod: Record) -> float:
    ended = _state(pod).get("terminated") or {}
    return _time(ended.get("finishedAt") or pod["metadata"]["creationTimestamp"])


def waits_for(pod: Record) -> tuple[str, str]:
    """(reason, message) of what keeps a pod from starting, or kept it, ("", "") if nothing does."""
    if refused := _refused(pod):
        return str(refused["reason"]), str(refused.get("message", ""))
    if (why := taken_away(pod)) and not has_run(pod):
        reason, _, message = why.partition(": ")
        return reason, message
    waiting = _state(pod).get("waiting") or {}
    if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
        return str(waiting["reason"]), str(waiting.get("message", ""))
    for one in pod.get("status", {}).get("conditions") or ():
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return str(one.get("reason", "")), str(one.get("message", ""))
    return "", ""


def container_of(job: Record, index: int, pods: Sequence[Record]) -> Container:
    """An index of a Job as if it were one container that is started again.

    Args:
        pods: its pods, oldest first.
    """
    tags, newest = job["metadata"]["labels"], pods[-1] if pods else None
    state, code, began, ended = "created", None, -1.0, -1.0
    reason = ""
    if newest is not None:
        began, code = started(newest), exit_code(newest)
        reason = taken_away(newest)
        if code is not None:
            state, ended = "exited", finished(newest)
        elif began > 0:
            state = "running"
        elif len(pods) > 1:
            state, code = "restarting", exit_code(pods[-2])
    elif is_stopped_by_kit(job):
        state, code = "exited", STOPPED
    terminated = _state(newest).get("terminated") if newest else None
    return Container(
        id=id_of(job, index),
        cluster=tags[labels.CLUSTER],
        name=f"{tags[labels.ROLE]}-{index}",
        role=tags[labels.ROLE],
        index=index,
        leader=tags.get(labels.LEADER) == "true" and index == 0,
        ip=str((newest or {}).get("status", {}).get("podIP", "")),
        gpus=(),
        state=state,
        exit_code=code,
        restarts=max(0, len(pods) - 1),
        oom=(terminated or {}).get("reason") == "OOMKilled",
        created=seconds_of(job["metadata"]["creationTimestamp"]),
        started=began,
        finished=ended,
        output=output_of(job),
        taken_away=reason,
    )


@dataclass
class Told:
    """Which starts and ends of a cluster's pods have been told, by their names."""

    started: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    """Names of the kit's tasks by pod."""

    def events(self, pods: Sequence[Record], now: float) -> Iterator[Event]:
        """Yields what has happened since the last call; a pod that is gone was deleted."""
        for pod in sorted(pods, key=_created):
            known, task, code = str(pod["metadata"]["name"]), name_of(pod), exit_code(pod)
            self.names[known] = task
            if known not in self.started and started(pod) > 0:
                self.started.add(known)
                yield Event(started(pod), "start", task, None)
            if known not in self.ended and code is not None:
                self.ended.add(known)
                yield Event(finished(pod), "die", task, code)
        for gone in self.names.keys() - {str(pod["metadata"]["name"]) for pod in pods}:
            task = self.names.pop(gone)
            if gone in self.started - self.ended:
                yield Event(now, "die", task, STOPPED)
            self.ended.add(gone)
