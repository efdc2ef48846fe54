"""A connection to a Kubernetes cluster: an engine whose containers are pods on its nodes."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster_kit import labels
from cluster_kit.errors import EngineError
from cluster_kit.platforms.engine import (
    Action,
    Container,
    ContainerSummary,
    Event,
    PolledLogs,
    Subscription,
    said_after,
    stamped,
)
from cluster_kit.platforms.kubernetes.kubernetes_api import Api, Refused, Unreachable
from cluster_kit.platforms.kubernetes.kubernetes_pods import (
    STOPPED_BY_KIT,
    TASK,
    Listing,
    Record,
    Told,
    by_task,
    container_of,
    exit_code,
    id_of,
    is_over,
    output_of,
    secrets_named,
    selector,
    task_of,
)
from cluster_kit.platforms.kubernetes.kubernetes_settings import (
    GROUP,
    kubernetes_name,
    kubernetes_secrets,
)
from cluster_kit.roles import ROLES
from cluster_kit.util.masking import masker

POLL_S = 1.0
EACH_S = 0.01
"""Seconds between requests for the list of pods: a list of 500 pods has several megabytes."""
SYNC_S = 0.5
LAST_WORDS_S = 10.0
"""The maximum seconds before the end of a task is reported; two scans of the reader are enough."""
READER = "reader"
"""The last word of the name of the pod that prints the tasks' files."""


class Watching(Listing):
    """The part of the engine that returns events; `engine.Engine` describes it."""

    _mirrors: dict[str, tuple[Mirror, float]]

    @abstractmethod
    def bring(self, cluster: str, run: str = "") -> None:
        """Copy the progress files of a cluster to this host."""

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        already, ended = Told(), dict[str, tuple[int, float]]()
        until, is_behind = until or Subscription(), True
        while True:
            pods = self.pods(cluster, run)
            self._keep(pods)
            self.bring(cluster, run)
            ready = [pod for pod in pods if self._is_read(cluster, pod, ended)]
            gone_too = [pod for pod in pods if pod not in ready]
            yield from already.events([*ready, *map(_running, gone_too)], time.time())
            if is_behind and not gone_too:
                is_behind = False
                yield Event(time.time(), Action.ALL_TOLD, "", None)
            if until.wait(max(POLL_S, len(pods) * EACH_S)):
                return

    def _is_read(self, cluster: str, pod: Record, ended: dict[str, tuple[int, float]]) -> bool:
        """Whether a pod runs, or all its files were copied here since its end."""
        if exit_code(pod) is None:
            return True
        mirror, _ = self._mirrors.get(cluster, (None, 0.0))
        scans = mirror.scans if mirror else 0
        name, now = str(pod["metadata"]["name"]), time.monotonic()
        first, at = ended.setdefault(name, (scans, now))
        return mirror is None or scans >= first + 2 or now > at + LAST_WORDS_S

    def _sync(self, cluster: str, output: Path) -> None:
        """Copy the parts that tasks have written since the last call."""
        mirror, at = self._mirrors.get(cluster, (Mirror(output), 0.0))
        if time.monotonic() < at + SYNC_S or not output.is_dir():
            return
        self._mirrors[cluster] = mirror, time.monotonic()
        wanted = {"timestamps": "true"} | ({"sinceTime": mirror.last} if mirror.last else {})
        path = f"{self._api.of('v1', 'pods')}/{kubernetes_name(cluster)}-{READER}/log"
        with contextlib.suppress(Refused):
            mirror.take(self._api.text(path, **wanted))


def _running(pod: Record) -> Record:
    """Returns a pod as it was before its end."""
    status = {key: value for key, value in pod["status"].items() if key != "conditions"}
    times = [one["state"].get("terminated", {}) for one in status.get("containerStatuses") or ()]
    state = [{"name": TASK, "state": {"running": {"startedAt": t.get("startedAt")}}} for t in times]
    return {
        **pod,
        "status": {**status, "phase": "Running", "reason": "", "containerStatuses": state},
    }


ROOT = "progress"
"""The only directory that is copied: results and checkpoints stay in the claim."""


WRONG = (ValueError, KeyError, TypeError, OverflowError, RecursionError, OSError)
"""Exceptions for a line that the reader did not write: others can write to the log, too."""


class Mirror:
    """Writes the data that the reader pod has printed into files below a directory of this host.

    Lines may arrive twice: each has the position of its bytes in its file. `scans` is the number of
    scans of all files by the reader.
    """

    def __init__(self, output: Path) -> None:
        self._output = output
        self.scans = 0
        self.last = ""
        """The time of the last line, as the API server writes it."""

    def take(self, log: str) -> None:
        """Take lines of the reader's log, each with its time in front; others are left out."""
        for line in log.splitlines():
            stamp, _, text = line.partition(" ")
            with contextlib.suppress(*WRONG):
                self._take(json.loads(text))
                self.last = stamp

    def _take(self, said: dict[str, Any]) -> None:
        if "scan" in said:
            self.scans = max(self.scans, int(said["scan"]))
            return
        path = self._inside(str(said["path"]))
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = "r+b" if path.exists() else "wb"
        with path.open(mode) as file:
            file.seek(int(said["at"]))
            file.write(base64.b64decode(said["data"]))
        os.utime(path)  # this host's time: it shows a heartbeat

    def _inside(self, name: str) -> Path | None:
        """The file of this name; None if it is outside the directory, since a program can write any
        line."""
        parts = Path(name).parts
        if not parts or parts[0] != ROOT or ".." in parts:
            return None
        return self._output / name


class PodLogs(PolledLogs):
    """The logs of pods.

    Logs that were read are kept after a pod is stopped, since Kubernetes deletes them with the pod.
    """

    _api: Api
    _kept: dict[str, list[str]]

    def _secrets_of(self, _metadata: Record, _spec: Record) -> tuple[str, ...]:
        """The values that are masked in the log of a pod."""
        return ()

    def _pods_of(self, container_id: str) -> list[Record]:
        """The pods of a task, oldest first."""
        job, _, _ = container_id.partition("/")
        pods = self._api.items(self._api.of("v1", "pods"), f"batch.kubernetes.io/job-name={job}")
        return by_task(pods).get(container_id, [])

    def _is_over(self, container_id: str) -> bool:
        pods = self._pods_of(container_id)
        return not pods or is_over(pods[-1])

    def _lines(self, container_id: str, since: float | None, *, stderr: bool = False) -> list[str]:
        """The lines of a log; `stderr` has no effect, since Kubernetes does not separate the
        streams."""
        pods = self._pods_of(container_id)
        if not pods:
            return said_after(self._kept.get(container_id, []), since)
        mask = masker(self._secrets_of(pods[-1]["metadata"], pods[-1].get("spec") or {}))
        lines: list[str] = []
        for pod in pods:
            lines += map(mask, self._read(str(pod["metadata"]["name"]), since))
        return said_after(lines, since)

    def _read(self, pod: str, since: float | None, container: str = TASK) -> list[str]:
        """The lines of a pod, each with its time; [] if it has not started."""
        wanted = {"container": container, "timestamps": "true"}
        if since is not None:
            wanted["sinceSeconds"] = str(max(1, int(time.time() - since) + 2))
        path = f"{self._api.of('v1', 'pods')}/{pod}/log"
        with contextlib.suppress(Refused):
            return stamped(self._api.text(path, **wanted))
        return []


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
"""The kinds of objects that are removed with a cluster; its claims stay, with the results."""


class KubernetesEngine(Unreachable, PodLogs, Watching):
    """The cluster of the current context; `engine.Engine` describes the methods.

    A container's id is its Job's name and its index.

    Raises:
        HostError: the client is not installed, or no cluster is configured.
    """

    def __init__(self, namespace: str = "") -> None:
        self._api = Api(namespace)
        self._kept, self._ended = {}, {}
        self._secrets: dict[tuple[str, str], set[str]] = {}
        self._no_sets = False
        self._mirrors: dict[str, tuple[Mirror, float]] = {}

    @property
    def api(self) -> Api:
        """The connection, for callers that start objects."""
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
        containers = []
        for job in jobs:
            secrets = self._secrets_of(job["metadata"], job["spec"]["template"]["spec"])
            for index in range(job["spec"]["completions"]):
                container = container_of(job, index, pods.get(id_of(job, index), ()))
                containers.append(replace(container, secrets=secrets))
        self._bring(cluster, jobs)
        order = {role: position for position, role in enumerate(ROLES)}
        return sorted(containers, key=lambda c: (order.get(c.role, len(order)), c.index))

    def _secrets_of(self, metadata: Record, spec: Record) -> tuple[str, ...]:
        """The values of the secrets of a Job or pod, without those that the caller may not read."""
        run = str((metadata.get("labels") or {}).get(labels.RUN, ""))
        names = secrets_named(spec)
        for name in names:
            if (run, name) not in self._secrets:
                self._secrets[run, name] = self._values_in(name)
        return tuple(sorted({value for name in names for value in self._secrets[run, name]}))

    def _values_in(self, secret: str) -> set[str]:
        try:
            data = self._api.get(f"{self._api.of('v1', 'secrets')}/{secret}").get("data") or {}
        except Refused:  # it does not exist, or this user has no access
            return set()
        texts = (base64.b64decode(value).decode("utf-8", "replace") for value in data.values())
        return {text for text in texts if text}

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
        """Kill the pod; its Job creates another one, up to the index's number of retries."""
        for pod in self._pods_of(container_id):
            if exit_code(pod) is None:
                self._delete("v1", "pods", pod["metadata"]["name"], gracePeriodSeconds="0")

    def end(self, container_id: str) -> None:
        self.kill(container_id)

    def start_again(self, container_id: str) -> None:
        """Jobs restart their pods themselves, except a leader.

        Raises:
            EngineError: its pod has ended for good.
        """
        pods = [p for p in self._pods_of(container_id) if "deletionTimestamp" not in p["metadata"]]
        if pods and exit_code(pods[-1]) is not None:
            raise EngineError(
                f"the pod of {container_id} has ended with exit code {exit_code(pods[-1])}, "
                "and its program has not reported how",
                "its log says more; with exit code 137 it needs more `memory`",
            )

    def stop(self, cluster: str, run: str = "") -> None:
        """Suspend the Jobs, or their set (which would resume single Jobs); their pods are deleted.

        The pods' logs are saved before.
        """
        going = {task_of(pod) for pod in self.pods(cluster, run) if exit_code(pod) is None}
        for known in going:
            self._kept[known] = self._lines(known, None)
        jobs, sets = self._api.of("batch/v1", "jobs"), self._api.of(GROUP, "jobsets")
        paths = [f"{sets}/{one['metadata']['name']}" for one in self._sets(cluster, run)]
        for path in paths or sorted({f"{jobs}/{known.partition('/')[0]}" for known in going}):
            with contextlib.suppress(Refused):  # it has already ended
                self._api.patch(path, STOP)
        self._wait(lambda: all(exit_code(p) is not None for p in self.pods(cluster, run)))
        time.sleep(POLL_S if going else 0)
        self.bring(cluster, run)  # their last lines are copied, too

    def remove(self, cluster: str, run: str = "") -> int:
        count = len(self.containers(cluster, run))
        for one in self._sets(cluster):  # first: a set creates its Jobs again
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
        """The metadata of the cluster's removable objects of one type.

        A user who may not list Secrets can still remove those that `up` created, since their names
        are known. `is_run` is whether `up` created the cluster: Secrets for a file that `kubectl`
        applied belong to the user.
        """
        try:
            objects = self._api.items(self._api.of(group, kind), selector(cluster, ""))
        except Refused as error:
            if kind != "secrets" or error.status != 403:
                raise
            return [{"name": name} for name in kubernetes_secrets(cluster)] if is_run else []
        return [one["metadata"] for one in objects]

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
