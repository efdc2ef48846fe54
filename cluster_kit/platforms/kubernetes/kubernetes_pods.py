"""Describes pods as containers; lists a cluster's Jobs, pods and sets, and remembers ended ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from cluster_kit import labels
from cluster_kit.contract.endings import EXIT_TERMINATED
from cluster_kit.platforms.engine import Action, Container, Event, seconds_of
from cluster_kit.platforms.kubernetes.kubernetes_api import Api, Refused
from cluster_kit.platforms.kubernetes.kubernetes_settings import GROUP, kubernetes_name

INDEX = "batch.kubernetes.io/job-completion-index"
OUTPUT = "cluster-kit.output"
"""The annotation of a Job with the host's directory to which its output is copied."""
STOPPED_BY_KIT = "cluster-kit.stopped"
"""The annotation of a Job that the kit has suspended: a queue suspends Jobs, too."""
TAKEN = 137
"""The exit code for a pod that has none, since it was evicted or its node was lost."""
TASK = "task"
NOT_STARTED = ("StartError", "ContainerCannotRun")
"""Reasons of the end of a container that its node could not start."""
Record = Mapping[str, Any]


def notes_of(record: Record) -> Mapping[str, str]:
    """The annotations of a Job, a set or a pod; Kubernetes leaves the key out if it has none."""
    return record["metadata"].get("annotations") or {}


def is_stopped_by_kit(record: Record) -> bool:
    """Whether the kit has suspended a Job or a set."""
    return STOPPED_BY_KIT in notes_of(record)


def secrets_named(spec: Record) -> set[str]:
    """Returns the names of the Secrets whose values a pod gets, as variables or files.

    Other fields have no secret values: a cluster's file is refused if it contains one.
    """
    variables = (one for c in spec.get("containers") or () for one in c.get("env") or ())
    sources = ((one.get("valueFrom") or {}).get("secretKeyRef") or {} for one in variables)
    volumes = (one.get("secret") or {} for one in spec.get("volumes") or ())
    names = {str(source.get("name", "")) for source in sources}
    return (names | {str(volume.get("secretName", "")) for volume in volumes}) - {""}


def id_of(job: Record, index: int) -> str:
    """The id of a task: its Job and its index in it."""
    return f"{job['metadata']['name']}/{index}"


def output_of(job: Record) -> str:
    """The host's directory to which its output is copied; "" if there is none."""
    return str(notes_of(job).get(OUTPUT, ""))


def task_of(pod: Record) -> str:
    """The id of a pod's task."""
    metadata = pod["metadata"]
    return f"{metadata['labels']['batch.kubernetes.io/job-name']}/{_index(pod)}"


def name_of(pod: Record) -> str:
    """The kit's name of its task: `worker-1`."""
    return f"{pod['metadata']['labels'][labels.ROLE]}-{_index(pod)}"


def _index(pod: Record) -> int:
    return int(notes_of(pod).get(INDEX) or pod["metadata"]["labels"].get(INDEX) or 0)


def by_task(pods: Iterable[Record]) -> dict[str, list[Record]]:
    """The pods of each task, oldest first, by its id."""
    groups: dict[str, list[Record]] = {}
    for pod in sorted(pods, key=_created):
        groups.setdefault(task_of(pod), []).append(pod)
    return groups


def _created(pod: Record) -> tuple[float, str]:
    return seconds_of(pod["metadata"]["creationTimestamp"]), str(pod["metadata"]["name"])


def _state(pod: Record) -> Record:
    """The state of a pod's container: {"running": …}, {"waiting": …}, {"terminated": …}, or {}."""
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    state: Record = next((one["state"] for one in statuses if one["name"] == TASK), {})
    return state


def is_over(pod: Record) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def exit_code(pod: Record) -> int | None:
    """The exit code of the pod's container; None if it has not ended."""
    ended = _state(pod).get("terminated")
    if taken_away(pod):
        return TAKEN
    if ended is not None:
        return int(ended["exitCode"])
    return TAKEN if is_over(pod) else None


def taken_away(pod: Record) -> str:
    """The reason why Kubernetes ended a pod (evicted, lost node); "" if it did not."""
    status = pod.get("status", {})
    if status.get("phase") == "Failed" and status.get("reason"):
        return f"{status['reason']}: {status.get('message', '')}".strip(": ")
    for one in status.get("conditions") or ():
        if one["type"] == "DisruptionTarget" and one["status"] == "True":
            return f"{one.get('reason', '')}: {one.get('message', '')}".strip(": ")
    return ""


def _time(text: str | None) -> float:
    """Unix seconds, rounded up, since Kubernetes reports whole seconds; -1 without a time."""
    return -1.0 if not text else seconds_of(text) + 0.999


def _refused(pod: Record) -> Record:
    """The end of a container that its node could not start; {} if there is none."""
    ended: Record = _state(pod).get("terminated") or {}
    return ended if ended.get("reason") in NOT_STARTED else {}


def has_run(pod: Record) -> bool:
    """Whether its container runs or has run; False if the node refused the pod."""
    return started(pod) > 0


def started(pod: Record) -> float:
    """The time at which its container started; negative if it has not."""
    state = _state(pod)
    if _refused(pod):
        return -1.0
    return _time((state.get("running") or state.get("terminated") or {}).get("startedAt"))


def finished(pod: Record) -> float:
    ended = _state(pod).get("terminated") or {}
    return _time(ended.get("finishedAt") or pod["metadata"]["creationTimestamp"])


def waits_for(pod: Record) -> tuple[str, str]:
    """(reason, message) of what prevents or prevented a pod's start, ("", "") if nothing did."""
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
    """An index of a Job, described as one container that is restarted.

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
        state, code = "exited", EXIT_TERMINATED
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
    """The starts and ends of a cluster's pods that have been reported, by name."""

    started: dict[str, float] = field(default_factory=dict)
    """Unix times."""
    ended: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    """Names of the kit's tasks by pod."""

    def events(self, pods: Sequence[Record], now: float) -> Iterator[Event]:
        """Yields the events since the last call; a missing pod was deleted."""
        for pod in sorted(pods, key=_created):
            known, task, code = str(pod["metadata"]["name"]), name_of(pod), exit_code(pod)
            self.names[known] = task
            if known not in self.started and started(pod) > 0:
                self.started[known] = started(pod)
                yield Event(started(pod), Action.START, task, None)
            if known not in self.ended and code is not None:
                self.ended.add(known)
                yield Event(finished(pod), Action.DIE, task, code)
        for gone in self.names.keys() - {str(pod["metadata"]["name"]) for pod in pods}:
            task = self.names.pop(gone)
            if gone in self.started.keys() - self.ended:
                # Kubernetes rounds times to seconds, so a start can be later than now.
                at = max(now, self.started[gone])
                yield Event(at, Action.DIE, task, EXIT_TERMINATED)
            self.ended.add(gone)


NOT_INSTALLED = (
    f"JobSet is not installed in this Kubernetes cluster, which does not know {GROUP}",
    "install it (https://jobset.sigs.k8s.io/docs/installation), or leave `kubernetes.jobset` out",
)
"""The message and the hint if JobSet is missing."""
NOT_MADE = "JobSet has made no Job for it"
AWAITED = "awaited"
"""The key of a Job that does not exist yet."""
IN_SET = "jobset.sigs.k8s.io/jobset-name"
"""The label of all Jobs and pods of a JobSet, with its name."""


def with_sets(jobs: Sequence[Record], sets: Iterable[Record]) -> list[Record]:
    """Returns the Jobs, including those that their sets will have or have had. If a set has ended
    or was stopped, its Jobs are marked as stopped, since they create no pods any more."""
    by_name = {str(job["metadata"]["name"]): job for job in jobs}
    for one in sets:
        for job in _jobs(one):
            there = by_name.get(job["metadata"]["name"], job)
            by_name[job["metadata"]["name"]] = _stopped(there) if set_is_over(one) else there
    return list(by_name.values())


def set_is_over(jobset: Record) -> bool:
    """Whether a set has succeeded or failed, or was stopped by the kit."""
    if is_stopped_by_kit(jobset):
        return True
    conditions = jobset.get("status", {}).get("conditions") or ()
    return any(c["type"] in ("Completed", "Failed") and c["status"] == "True" for c in conditions)


def _jobs(jobset: Record) -> Iterator[dict[str, Any]]:
    own = jobset["metadata"]
    for one in jobset["spec"]["replicatedJobs"]:
        template = one["template"]
        for number in range(one.get("replicas", 1)):
            metadata = {
                "name": f"{own['name']}-{one['name']}-{number}",
                "creationTimestamp": own["creationTimestamp"],
                **{key: template["metadata"].get(key) or {} for key in ("labels", "annotations")},
            }
            yield {"metadata": metadata, "spec": template["spec"], AWAITED: True}


def _stopped(job: Record) -> Record:
    notes = {**notes_of(job), STOPPED_BY_KIT: "true"}
    return {**job, "metadata": {**job["metadata"], "annotations": notes}}


_PARALLEL = 16


class Ended:
    """The part of the engine that remembers ended pods, from when it has seen them end."""

    _kept: dict[str, list[str]]
    """The logs of ended tasks, by id."""
    _ended: dict[str, Record]
    """Pods by name."""

    @abstractmethod
    def _read(self, pod: str, since: float | None) -> list[str]:
        """A pod's log, each line with its time in front."""

    def _keep(self, pods: Sequence[Record]) -> None:
        """Keep the records of ended pods, and the logs of pods that are about to be deleted."""
        going = [pod for pod in pods if self._is_going(pod)]
        every = by_task(pods) if going else {}
        tasks = sorted(set(map(task_of, going)))
        with ThreadPoolExecutor(_PARALLEL) as pool:
            logs = pool.map(lambda task: self._said(every[task]), tasks)
            self._kept |= dict(zip(tasks, logs, strict=True))
        for pod in going:
            if exit_code(pod) is not None:
                self._ended[pod["metadata"]["name"]] = pod

    def _is_going(self, pod: Record) -> bool:
        """Whether its set may soon delete a pod, or is deleting it, so that its log must be read
        now."""
        metadata = pod["metadata"]
        if IN_SET not in metadata["labels"] or metadata["name"] in self._ended:
            return False
        return exit_code(pod) is not None or "deletionTimestamp" in metadata

    def _said(self, pods: Sequence[Record]) -> list[str]:
        return [line for pod in pods for line in self._read(str(pod["metadata"]["name"]), None)]

    def _with_ended(self, listed: list[Record], cluster: str, run: str) -> list[Record]:
        """The existing pods, and those of this cluster that no longer exist."""
        there = {pod["metadata"]["name"] for pod in listed}
        wanted = {labels.CLUSTER: cluster} | ({labels.RUN: run} if run else {})
        gone = (pod for name, pod in self._ended.items() if name not in there)
        return [*listed, *(p for p in gone if wanted.items() <= p["metadata"]["labels"].items())]

    def _forget(self, cluster: str) -> None:
        for name, pod in [*self._ended.items()]:
            if pod["metadata"]["labels"][labels.CLUSTER] == cluster:
                del self._ended[name]


NOT_READY = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
"""Reasons of events about a pod without containers yet: its status lacks the cause."""


class Listing(Ended):
    """The part of the engine that lists existing objects."""

    _api: Api
    _no_sets: bool
    """Whether JobSets are not installed, or not visible to this user."""

    def _jobs(self, cluster: str, run: str = "") -> list[Record]:
        path = self._api.of("batch/v1", "jobs")
        jobs = self._api.items(path, f"{labels.ROLE},{selector(cluster, run)}")
        if cluster and jobs and not any(IN_SET in job["metadata"]["labels"] for job in jobs):
            return [*jobs]  # all Jobs of a cluster are in one set, or none is
        return with_sets(jobs, self._sets(cluster, run))

    def _sets(self, cluster: str, run: str = "") -> list[Record]:
        """The JobSets; [] if JobSet is not installed, or the user has no access."""
        if self._no_sets:
            return []
        try:
            return [*self._api.items(self._api.of(GROUP, "jobsets"), selector(cluster, run))]
        except Refused as error:
            if error.status not in (403, 404):
                raise
            self._no_sets = True
            return []

    def is_queued(self, cluster: str, run: str) -> bool:
        """Whether a queue holds Jobs or their set back; False if the kit has stopped them."""
        return any(
            one["spec"].get("suspend") and not is_stopped_by_kit(one)
            for one in self._sets(cluster, run) or self._jobs(cluster, run)
        )

    def pods(self, cluster: str, run: str = "") -> list[Record]:
        """The records of all pods of tasks, including those deleted with their set."""
        return self._with_ended(self._listed(cluster, run), cluster, run)

    def _listed(self, cluster: str, run: str) -> list[Record]:
        path = self._api.of("v1", "pods")
        return [*self._api.items(path, f"{labels.ROLE},{selector(cluster, run)}")]

    def complaints(self, cluster: str) -> dict[str, str]:
        """The messages of Kubernetes about Jobs without pods, by the Job's name (a message about a
        set counts for all its Jobs), and about pods whose containers a node cannot create, by the
        pod's name."""
        complaints: dict[str, str] = {}
        events = self._api.get(self._api.of("v1", "events"), fieldSelector="type=Warning")["items"]
        jobs = self._jobs(cluster)
        names = {job["metadata"]["name"] for job in jobs}
        sets = {job["metadata"]["name"]: NOT_MADE for job in jobs if AWAITED in job}
        for event in events:
            about = event["involvedObject"]
            if about["kind"] == "Job" and about["name"] in names:
                complaints[about["name"]] = str(event.get("message", ""))
            if about["kind"] == "Pod" and event.get("reason") in NOT_READY:
                complaints[about["name"]] = f"{event['reason']}: {event.get('message', '')}"
            if about["kind"] == "JobSet" and about["name"] == kubernetes_name(cluster):
                sets = dict.fromkeys(names, str(event.get("message", "")))
        return {**sets, **complaints}


def selector(cluster: str, run: str) -> str:
    """The selector of all objects of a cluster or a run; without a name, of all clusters."""
    mine = f"{labels.CLUSTER}={cluster}" if cluster else labels.CLUSTER
    return f"{mine},{labels.RUN}={run}" if run else mine
