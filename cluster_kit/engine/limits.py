"""What a running container uses, and its limits, changed while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def of_cpus(api: Any, container_id: str, cpus: float) -> None:
    """At most so many cores."""
    _update(api, container_id, {"NanoCpus": round(cpus * 1e9)})


def of_memory(api: Any, container_id: str, memory: int, *, swap: bool) -> None:
    """At most so many bytes of memory, and as many of swap, or none."""
    both = memory * 2 if swap else memory
    _update(api, container_id, {"Memory": memory, "MemorySwap": both})


def memory_used(api: Any, container_id: str) -> int:
    """Bytes, its page cache included."""
    told = api.stats(container_id, stream=False, one_shot=True)
    return int(told["memory_stats"]["usage"])


def _update(api: Any, container_id: str, limits: Mapping[str, int]) -> None:
    # The SDK's `update` knows only quotas, which the engine refuses beside a limit in cores.
    url = api._url("/containers/{0}/update", container_id)
    api._raise_for_status(api._post_json(url, data=dict(limits)))
