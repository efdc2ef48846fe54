"""What the tasks of a cluster on Kubernetes have said, in all pods of each."""

from __future__ import annotations

import contextlib
import time

from cluster_kit.engine.elsewhere import LogsByAsking, said_after, stamped
from cluster_kit.engine.kubernetes.api import Api, Refused
from cluster_kit.engine.kubernetes.pods import TASK, Record, by_task, is_over


class PodLogs(LogsByAsking):
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
