"""What is changed of a container: its limits, its network, its end, its next start."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from docker.errors import APIError

from cluster_kit.engine import helper
from cluster_kit.engine.failures import as_engine_errors
from cluster_kit.engine.found import of_cluster
from cluster_kit.engine.removal import stop_all

CONFLICT = 409
FREEZES, FREEZE_S = 3, 0.3
"""runc gives up freezing a container whose processes start threads at that moment."""


class Adjustments:
    """The part of the Docker engine that changes what runs; `interface.Engine` describes it."""

    _client: Any

    @as_engine_errors()
    def limit_cpus(self, container_id: str, cpus: float) -> None:
        self._update(container_id, {"NanoCpus": round(cpus * 1e9)})

    @as_engine_errors()
    def memory_used(self, container_id: str) -> int:
        told = self._client.api.stats(container_id, stream=False, one_shot=True)
        return int(told["memory_stats"]["usage"])

    @as_engine_errors()
    def limit_memory(self, container_id: str, memory: int, *, swap: bool) -> None:
        both = memory * 2 if swap else memory
        self._update(container_id, {"Memory": memory, "MemorySwap": both})

    @as_engine_errors()
    def freeze(self, container_id: str) -> None:
        for left in reversed(range(FREEZES)):
            try:
                self._client.api.pause(container_id)
            except APIError as error:
                if not left or not error.is_server_error():
                    raise
                time.sleep(FREEZE_S)
            else:
                return

    @as_engine_errors()
    def thaw(self, container_id: str) -> None:
        self._client.api.unpause(container_id)

    @as_engine_errors()
    def start_helper(self, cluster: str, chosen: helper.Helper) -> str:
        return helper.start(self._client, cluster, chosen)

    @as_engine_errors()
    def kill(self, container_id: str) -> None:
        container = self._client.containers.get(container_id)
        try:
            container.kill()
        except APIError as error:
            if error.status_code != CONFLICT:  # it has ended
                raise

    @as_engine_errors()
    def attach(self, container_id: str, cluster: str, task: str, ip: str) -> None:
        for network in self._client.networks.list(filters=of_cluster(cluster)):
            network.connect(container_id, ipv4_address=ip, aliases=[task])

    @as_engine_errors()
    def detach(self, container_id: str, cluster: str) -> None:
        for network in self._client.networks.list(filters=of_cluster(cluster)):
            network.disconnect(container_id)

    @as_engine_errors()
    def start_again(self, container_id: str) -> None:
        self._client.containers.get(container_id).start()

    @as_engine_errors()
    def end(self, container_id: str) -> None:
        stop_all([self._client.containers.get(container_id)])

    def _update(self, container_id: str, limits: Mapping[str, int]) -> None:
        # The SDK's `update` knows only quotas, which the engine refuses beside a limit in cores.
        api = self._client.api
        url = api._url("/containers/{0}/update", container_id)
        api._raise_for_status(api._post_json(url, data=dict(limits)))
