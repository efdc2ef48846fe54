"""Lists a cluster's Jobs, pods and sets, and keeps what has ended."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cluster_kit import labels
from cluster_kit.platforms.kubernetes.kubernetes_api import Api, Refused
from cluster_kit.platforms.kubernetes.kubernetes_names import GROUP, kubernetes_name
from cluster_kit.platforms.kubernetes.pods import (
    STOPPED_BY_KIT,
    Record,
    by_task,
    exit_code,
    is_stopped_by_kit,
    notes_of,
    task_of,
)

NOT_INSTALLED = (
    f"JobSet is not installed in this Kubernetes cluster, which does not know {GROUP}",
    "install it (https://jobset.sigs.k8s.io/docs/installation), or leave `kubernetes.jobset` out",
)
"""(message, hint)."""
NOT_MADE = "JobSet has made no Job for it"
AWAITED = "awaited"
"""The key of a Job that is not there."""
IN_SET = "jobset.sigs.k8s.io/jobset-name"
"""The label of all Jobs and pods of a set, with its name."""


def with_sets(jobs: Sequence[Record], sets: Iterable[Record]) -> list[Record]:
    """Returns the Jobs, and those that their sets are to have or have had. Where a set is over, or
    was stopped, its Jobs are marked as stopped: those without a pod make none any more."""
    found = {str(job["metadata"]["name"]): job for job in jobs}
    for one in sets:
        for job in _jobs(one):
            there = found.get(job["metadata"]["name"], job)
            found[job["metadata"]["name"]] = _stopped(there) if is_over(one) else there
    return list(found.values())


def is_over(jobset: Record) -> bool:
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
    """The part of the engine that remembers them, from when it has seen them end."""

    _kept: dict[str, list[str]]
    """What tasks had said, by their ids."""
    _ended: dict[str, Record]
    """Pods by name."""

    @abstractmethod
    def _read(self, pod: str, since: float | None) -> list[str]:
        """What a pod has said, each line with its time in front."""

    def _keep(self, pods: Sequence[Record]) -> None:
        """Keep the records of pods that have ended, and the logs of those that are about to go."""
        going = [pod for pod in pods if self._is_going(pod)]
        every = by_task(pods) if going else {}
        tasks = sorted(set(map(task_of, going)))
        with ThreadPoolExecutor(_PARALLEL) as pool:
            said = pool.map(lambda task: self._said(every[task]), tasks)
            self._kept |= dict(zip(tasks, said, strict=True))
        for pod in going:
            if exit_code(pod) is not None:
                self._ended[pod["metadata"]["name"]] = pod

    def _is_going(self, pod: Record) -> bool:
        """Whether its set may delete a pod from now on, or does; and its log is to be read."""
        metadata = pod["metadata"]
        if IN_SET not in metadata["labels"] or metadata["name"] in self._ended:
            return False
        return exit_code(pod) is not None or "deletionTimestamp" in metadata

    def _said(self, pods: Sequence[Record]) -> list[str]:
        return [line for pod in pods for line in self._read(str(pod["metadata"]["name"]), None)]

    def _with_ended(self, listed: list[Record], cluster: str, run: str) -> list[Record]:
        """The pods that are there, and those of this cluster that are not there any more."""
        there = {pod["metadata"]["name"] for pod in listed}
        wanted = {labels.CLUSTER: cluster} | ({labels.RUN: run} if run else {})
        gone = (pod for name, pod in self._ended.items() if name not in there)
        return [*listed, *(p for p in gone if wanted.items() <= p["metadata"]["labels"].items())]

    def _forget(self, cluster: str) -> None:
        for name, pod in [*self._ended.items()]:
            if pod["metadata"]["labels"][labels.CLUSTER] == cluster:
                del self._ended[name]


NOT_READY = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")
"""Reasons of events about a pod that has a node, and whose containers are not made: no more is said
of it than that they are being made."""


class Listing(Ended):
    """The part of the engine that lists what is there."""

    _api: Api
    _no_sets: bool
    """Whether there are no JobSets to be seen."""

    def _jobs(self, cluster: str, run: str = "") -> list[Record]:
        path = self._api.of("batch/v1", "jobs")
        found = self._api.items(path, f"{labels.ROLE},{selector(cluster, run)}")
        if cluster and found and not any(IN_SET in job["metadata"]["labels"] for job in found):
            return [*found]  # a cluster's Jobs are all of one set, or of none
        return with_sets(found, self._sets(cluster, run))

    def _sets(self, cluster: str, run: str = "") -> list[Record]:
        """The JobSets; none where JobSet is not installed, or whoever asks may not see any."""
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
        """Whether a queue holds Jobs back, or their set; one that the kit has stopped is not."""
        return any(
            one["spec"].get("suspend") and not is_stopped_by_kit(one)
            for one in self._sets(cluster, run) or self._jobs(cluster, run)
        )

    def pods(self, cluster: str, run: str = "") -> list[Record]:
        """The records of all pods of tasks, also of those that have gone with their set."""
        return self._with_ended(self._listed(cluster, run), cluster, run)

    def _listed(self, cluster: str, run: str) -> list[Record]:
        path = self._api.of("v1", "pods")
        return [*self._api.items(path, f"{labels.ROLE},{selector(cluster, run)}")]

    def complaints(self, cluster: str) -> dict[str, str]:
        """What Kubernetes says of Jobs for which it makes no pods, by the Job's name; what it says
        of a set, of all of its Jobs; and what keeps a node from making a pod's containers, by the
        pod's name."""
        found: dict[str, str] = {}
        events = self._api.get(self._api.of("v1", "events"), fieldSelector="type=Warning")["items"]
        jobs = self._jobs(cluster)
        names = {job["metadata"]["name"] for job in jobs}
        sets = {job["metadata"]["name"]: NOT_MADE for job in jobs if AWAITED in job}
        for event in events:
            about = event["involvedObject"]
            if about["kind"] == "Job" and about["name"] in names:
                found[about["name"]] = str(event.get("message", ""))
            if about["kind"] == "Pod" and event.get("reason") in NOT_READY:
                found[about["name"]] = f"{event['reason']}: {event.get('message', '')}"
            if about["kind"] == "JobSet" and about["name"] == kubernetes_name(cluster):
                sets = dict.fromkeys(names, str(event.get("message", "")))
        return {**sets, **found}


def selector(cluster: str, run: str) -> str:
    """The labels of all that is a cluster's, or a run's; of every cluster's without a name."""
    mine = f"{labels.CLUSTER}={cluster}" if cluster else labels.CLUSTER
    return f"{mine},{labels.RUN}={run}" if run else mine
