"""What the tasks of a swarm have said, on whichever node they were."""

from __future__ import annotations

import contextlib
from typing import Any

from docker.errors import APIError

from cluster_kit.engine.elsewhere import LogsByAsking, said_after, stamped
from cluster_kit.engine.failures import as_engine_errors
from cluster_kit.engine.swarm.tasks import (
    ENDED,
    Task,
    by_service,
    container_of,
    state_of,
    with_lost,
)
from cluster_kit.util.masking import masked


class SwarmLogs(LogsByAsking):
    """The logs of the tasks of a swarm."""

    _client: Any

    def _tasks(self, filters: Any) -> list[Task]:
        return with_lost(self._client.api.tasks(filters=filters), self._client.api.nodes())

    def _of(self, service: str) -> list[Task]:
        """The tasks of one service, oldest first."""
        with as_engine_errors():
            return by_service(self._tasks({"service": service})).get(service, [])

    def _is_over(self, service: str) -> bool:
        tasks = self._of(service)
        return bool(tasks) and state_of(tasks[-1]) in ENDED

    def _lines(self, container_id: str, since: float | None, *, stderr: bool = False) -> list[str]:
        """The lines of all of a service's tasks, oldest task first, each with its time.

        What a lost node has is left out.
        """
        wanted: dict[str, Any] = {"stdout": int(not stderr), "stderr": 1, "timestamps": 1}
        wanted |= {} if since is None else {"since": f"{since:.9f}"}
        lines: list[str] = []
        with as_engine_errors():
            service = self._client.api.inspect_service(container_id)
            secrets = container_of(service, ()).secrets
            for task in self._of(container_id):
                with contextlib.suppress(APIError):
                    raw = self._raw_logs(str(task["ID"]), wanted)
                    text = masked(raw.decode("utf-8", errors="replace"), secrets)
                    lines += stamped(text)
        return said_after(lines, since)

    def _raw_logs(self, task: str, wanted: dict[str, Any]) -> bytes:
        api = self._client.api
        answer = api._get(api._url("/tasks/{0}/logs", task), params=wanted, stream=True)
        api._raise_for_status(answer)
        return bytes(api._get_result_tty(False, answer, False))
