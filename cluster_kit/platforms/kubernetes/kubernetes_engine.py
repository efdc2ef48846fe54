"""A connection to a Kubernetes cluster: an engine whose containers are pods on its nodes."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.platforms.engine import Container, ContainerSummary
from cluster_kit.platforms.kubernetes.kubernetes_api import Api, Refused, Unreachable
from cluster_kit.platforms.kubernetes.kubernetes_listing import selector
from cluster_kit.platforms.kubernetes.kubernetes_names import GROUP, kubernetes_secrets
from cluster_kit.platforms.kubernetes.kubernetes_watching import POLL_S, Mirror, PodLogs, Watching
from cluster_kit.platforms.kubernetes.pods import (
    STOPPED_BY_KIT,
    Record,
    by_task,
    container_of,
    exit_code,
    id_of,
    output_of,
    task_of,
)
from cluster_kit.roles import ROLES

GONE_S = 60.0
STOP = {"metadata": {"annotations": {STOPPED_BY_KIT: "true"}}, "spec": {"suspend": True}}
KINDS = (
    ("batch/v1", "jobs"),
    ("v1", "pods"),
    ("v1", "services"),
    ("v1", "configmaps"),
    ("v1", "secrets"),
    ("networking.k8s.io/v1", "networkpolicies"),
)
"""What is removed with a cluster; its claims stay, with the results in them."""


class KubernetesEngine(Unreachable, PodLogs, Watching):
    """The cluster of the current context; `engine.Engine` describes the methods.

    A container's id is its Job's name and its index.

    Raises:
        HostError: the client is not installed, or no cluster is configured.
    """

    def __init__(self, namespace: str = "") -> None:
        self._api = Api(namespace)
        self._kept, self._ended = {}, {}
        self._no_sets = False
        self._mirrors: dict[str, tuple[Mirror, float]] = {}

    @property
    def api(self) -> Api:
        """The connection, for who starts something."""
        return self._api

    def answers(self) -> bool:
        try:
            self._api.get("/version")
        except EngineError:
            return False
        return True

    def close(self) -> None:
        self._api.close()

    def info(self) -> dict[str, Any]:
        return self._api.get("/version")

    def identity(self) -> str:
        return hashlib.sha256(f"{self._api.host} {self._api.namespace}".encode()).hexdigest()[:12]

    def clusters(self) -> list[str]:
        return sorted({one["metadata"]["labels"][labels.CLUSTER] for one in self._jobs("")})

    def containers(self, cluster: str, run: str = "") -> list[Container]:
        jobs, pods = self._jobs(cluster, run), by_task(self.pods(cluster, run))
        found = [
            container_of(job, index, pods.get(id_of(job, index), ()))
            for job in jobs
            for index in range(job["spec"]["completions"])
        ]
        self._bring(cluster, jobs)
        order = {role: position for position, role in enumerate(ROLES)}
        return sorted(found, key=lambda c: (order.get(c.role, len(order)), c.index))

    def bring(self, cluster: str, run: str = "") -> None:
        self._bring(cluster, self._jobs(cluster, run))

    def _bring(self, cluster: str, jobs: list[Record]) -> None:
        if jobs and (output := output_of(jobs[0])):
            self._sync(cluster, Path(output))

    def glance(self) -> list[ContainerSummary]:
        return [
            ContainerSummary(c.id, c.cluster, "", c.name, c.role, c.state, c.output)
            for cluster in self.clusters()
            for c in self.containers(cluster)
        ]

    def kill(self, container_id: str) -> None:
        """Its Job makes another pod, as often as the index may be started again."""
        for pod in self._pods_of(container_id):
            if exit_code(pod) is None:
                self._delete("v1", "pods", pod["metadata"]["name"], gracePeriodSeconds="0")

    def end(self, container_id: str) -> None:
        self.kill(container_id)

    def start_again(self, container_id: str) -> None:
        """Jobs do so themselves, but for a leader.

        Raises:
            EngineError: its pod has ended for good.
        """
        pods = [p for p in self._pods_of(container_id) if "deletionTimestamp" not in p["metadata"]]
        if pods and exit_code(pods[-1]) is not None:
            raise EngineError(
                f"the pod of {container_id} has ended with exit code {exit_code(pods[-1])}, "
                "and its program has not said how",
                "its log says more; with exit code 137 it needs more `memory`",
            )

    def stop(self, cluster: str, run: str = "") -> None:
        """Suspend the Jobs, or their set, which would resume them: their pods are deleted, with
        what they have said, which is kept."""
        going = {task_of(pod) for pod in self.pods(cluster, run) if exit_code(pod) is None}
        for known in going:
            self._kept[known] = self._lines(known, None)
        jobs, sets = self._api.of("batch/v1", "jobs"), self._api.of(GROUP, "jobsets")
        paths = [f"{sets}/{one['metadata']['name']}" for one in self._sets(cluster, run)]
        for path in paths or sorted({f"{jobs}/{known.partition('/')[0]}" for known in going}):
            with contextlib.suppress(Refused):  # it has ended by now
                self._api.patch(path, STOP)
        self._wait(lambda: all(exit_code(p) is not None for p in self.pods(cluster, run)))
        time.sleep(POLL_S if going else 0)
        self.bring(cluster, run)  # what they wrote at their end is brought, too

    def remove(self, cluster: str, run: str = "") -> int:
        count = len(self.containers(cluster, run))
        for one in self._sets(cluster):  # first: a set makes its Jobs anew
            self._delete(GROUP, "jobsets", one["metadata"]["name"])
        is_run = False
        for group, kind in KINDS:
            for one in self._removable(group, kind, cluster, is_run=is_run):
                is_run |= bool(one.get("labels", {}).get(labels.RUN))
                self._delete(group, kind, one["name"])
        gone = self._wait(lambda: not self._listed(cluster, run))
        self._forget(cluster)
        self._mirrors.pop(cluster, None)
        if not gone:
            raise EngineError(
                f"pods of {cluster} are still there {GONE_S:.0f} s after they were deleted",
                f"`kubectl get pods -l {labels.CLUSTER}={cluster} -o wide` shows on which nodes",
            )
        return count

    def _removable(self, group: str, kind: str, cluster: str, *, is_run: bool) -> list[Record]:
        """The metadata of its objects of a kind.

        Who may not list Secrets still removes those that `up` has made, since their names are
        known. `is_run` is whether `up` has made the cluster: Secrets for a file that `kubectl`
        applied are the user's own.
        """
        try:
            found = self._api.items(self._api.of(group, kind), selector(cluster, ""))
        except Refused as error:
            if kind != "secrets" or error.status != 403:
                raise
            return [{"name": name} for name in kubernetes_secrets(cluster)] if is_run else []
        return [one["metadata"] for one in found]

    def _delete(self, group: str, kind: str, name: str, **query: str) -> None:
        try:
            path = f"{self._api.of(group, kind)}/{name}"
            self._api.delete(path, propagationPolicy="Background", **query)
        except Refused as error:
            if error.status != 404:
                raise

    def _wait(self, done: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + GONE_S
        while not done():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True
