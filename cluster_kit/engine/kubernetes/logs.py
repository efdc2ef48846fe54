"""What the tasks of a cluster on Kubernetes have said, in all pods of each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from cluster_kit.engine.elsewhere import follow, said_after
from cluster_kit.engine.kubernetes.api import Api, Refused
from cluster_kit.engine.kubernetes.pods import TASK, Record, by_task, is_over


class PodLogs:
    """The part of the engine that reads logs; `interface.Engine` describes it.

    What was read of pods that have been stopped since is kept: Kubernetes deletes it with them.
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

    def logs(self, container_id: str, *, stderr: bool = False) -> str:
        """Kubernetes does not tell stderr apart: both are the same."""
        return "".join(f"{line}\n" for line in self._lines(container_id, None))

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        return follow(
            lambda last: self._lines(container_id, last),
            lambda: self._is_over(container_id),
            since,
            times=times,
        )

    def _lines(self, container_id: str, since: float | None) -> list[str]:
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
            return [line for line in self._api.text(path, **wanted).splitlines() if " " in line]
        return []
