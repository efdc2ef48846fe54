"""What a Kubernetes cluster has of a cluster of the kit: Jobs and their sets, pods, complaints."""

from __future__ import annotations

from cluster_kit import labels
from cluster_kit.engine.kubernetes.api import Api, Refused
from cluster_kit.engine.kubernetes.ended import Ended
from cluster_kit.engine.kubernetes.pods import Record, is_stopped_by_kit
from cluster_kit.engine.kubernetes.sets import AWAITED, GROUP, IN_SET, NOT_MADE, with_sets

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
            if about["kind"] == "JobSet" and about["name"] == labels.kubernetes_name(cluster):
                sets = dict.fromkeys(names, str(event.get("message", "")))
        return {**sets, **found}


def selector(cluster: str, run: str) -> str:
    """The labels of all that is a cluster's, or a run's; of every cluster's without a name."""
    mine = f"{labels.CLUSTER}={cluster}" if cluster else labels.CLUSTER
    return f"{mine},{labels.RUN}={run}" if run else mine
