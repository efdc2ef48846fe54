"""What happens to the pods of a cluster, and the bringing of what they write."""

from __future__ import annotations

import contextlib
import time
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path

from cluster_kit import labels
from cluster_kit.engine.containers import Event
from cluster_kit.engine.kubernetes.api import Refused
from cluster_kit.engine.kubernetes.listing import Listing
from cluster_kit.engine.kubernetes.mirror import Mirror
from cluster_kit.engine.kubernetes.pods import TASK, Record, Told, exit_code
from cluster_kit.engine.subscription import Subscription

POLL_S = 1.0
EACH_S = 0.01
"""A list of 500 pods is several megabytes: it is asked for every 5 s."""
SYNC_S = 0.5
LAST_WORDS_S = 10.0
"""A task that has ended is told when the reader has looked twice since, or after so long."""
READER = "reader"
"""Which pod prints what tasks write: the last word of its name."""


class Watching(Listing):
    """The part of the engine that tells events; `interface.Engine` describes it."""

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
        path = f"{self._api.of('v1', 'pods')}/{labels.kubernetes_name(cluster)}-{READER}/log"
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
