"""What pods print and write, read while they run."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import time
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster_kit.platforms.engine import Event, Subscription
from cluster_kit.platforms.kubernetes.kubernetes_api import Api, Refused
from cluster_kit.platforms.kubernetes.kubernetes_listing import Listing
from cluster_kit.platforms.kubernetes.kubernetes_names import kubernetes_name
from cluster_kit.platforms.kubernetes.pods import TASK, Record, Told, by_task, exit_code, is_over
from cluster_kit.platforms.polled_logs import PolledLogs, said_after, stamped

POLL_S = 1.0
EACH_S = 0.01
"""A list of 500 pods is several megabytes: it is asked for every 5 s."""
SYNC_S = 0.5
LAST_WORDS_S = 10.0
"""A task that has ended is told when the reader has looked twice since, or after so long."""
READER = "reader"
"""Which pod prints what tasks write: the last word of its name."""


class Watching(Listing):
    """The part of the engine that tells events; `engine.Engine` describes it."""

    _mirrors: dict[str, tuple[Mirror, float]]

    @abstractmethod
    def bring(self, cluster: str, run: str = "") -> None:
        """Bring the progress files of a cluster."""

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        told, ended = Told(), dict[str, tuple[int, float]]()
        until = until or Subscription()
        while True:
            pods = self.pods(cluster, run)
            self._keep(pods)
            self.bring(cluster, run)
            ready = [pod for pod in pods if self._is_read(cluster, pod, ended)]
            gone_too = [pod for pod in pods if pod not in ready]
            yield from told.events([*ready, *map(_running, gone_too)], time.time())
            if until.wait(max(POLL_S, len(pods) * EACH_S)):
                return

    def _is_read(self, cluster: str, pod: Record, ended: dict[str, tuple[int, float]]) -> bool:
        """Whether a pod goes on, or all that it has written was brought here since its end."""
        if exit_code(pod) is None:
            return True
        mirror, _ = self._mirrors.get(cluster, (None, 0.0))
        scans = mirror.scans if mirror else 0
        name, now = str(pod["metadata"]["name"]), time.monotonic()
        first, at = ended.setdefault(name, (scans, now))
        return mirror is None or scans >= first + 2 or now > at + LAST_WORDS_S

    def _sync(self, cluster: str, output: Path) -> None:
        """Bring what tasks have written since the last call."""
        mirror, at = self._mirrors.get(cluster, (Mirror(output), 0.0))
        if time.monotonic() < at + SYNC_S or not output.is_dir():
            return
        self._mirrors[cluster] = mirror, time.monotonic()
        wanted = {"timestamps": "true"} | ({"sinceTime": mirror.last} if mirror.last else {})
        path = f"{self._api.of('v1', 'pods')}/{kubernetes_name(cluster)}-{READER}/log"
        with contextlib.suppress(Refused):
            mirror.take(self._api.text(path, **wanted))


def _running(pod: Record) -> Record:
    """A pod as it was before its end."""
    status = {key: value for key, value in pod["status"].items() if key != "conditions"}
    times = [one["state"].get("terminated", {}) for one in status.get("containerStatuses") or ()]
    state = [{"name": TASK, "state": {"running": {"startedAt": t.get("startedAt")}}} for t in times]
    return {
        **pod,
        "status": {**status, "phase": "Running", "reason": "", "containerStatuses": state},
    }


ROOT = "progress"
"""The only directory that is brought: results and checkpoints stay in the claim."""


WRONG = (ValueError, KeyError, TypeError, OverflowError, RecursionError, OSError)
"""What a line can raise that is no reader's: whoever can write logs can write any."""


class Mirror:
    """Writes what the reader has printed below a directory of this host.

    Lines may come twice: each says where in its file its bytes belong. `scans` is how often the
    reader has looked at all files.
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
        os.utime(path)  # a beat is seen by when its file was written, by this host's clock

    def _inside(self, name: str) -> Path | None:
        """The file of that name, None if it would lie elsewhere: a program can write any line."""
        parts = Path(name).parts
        if not parts or parts[0] != ROOT or ".." in parts:
            return None
        return self._output / name


class PodLogs(PolledLogs):
    """The logs of pods.

    What was read of those that have been stopped since is kept: Kubernetes deletes it with them.
    """

    _api: Api
    _kept: dict[str, list[str]]

    def _pods_of(self, container_id: str) -> list[Record]:
        """The pods of a task, oldest first."""
        job, _, _ = container_id.partition("/")
        found = self._api.items(self._api.of("v1", "pods"), f"batch.kubernetes.io/job-name={job}")
        return by_task(found).get(container_id, [])

    def _is_over(self, container_id: str) -> bool:
        pods = self._pods_of(container_id)
        return not pods or is_over(pods[-1])

    def _lines(self, container_id: str, since: float | None, *, stderr: bool = False) -> list[str]:
        """Kubernetes does not tell stderr apart: both are the same."""
        pods = self._pods_of(container_id)
        if not pods:
            return said_after(self._kept.get(container_id, []), since)
        lines: list[str] = []
        for pod in pods:
            lines += self._read(str(pod["metadata"]["name"]), since)
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
