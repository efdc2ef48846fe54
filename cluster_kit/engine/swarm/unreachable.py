"""What cannot be done to a container that may be on another node."""

from __future__ import annotations

from typing import Any, NoReturn

from cluster_kit.errors import EngineError


class Unreachable:
    """Each of these methods of an engine raises EngineError: no API of a swarm reaches inside."""

    def _elsewhere(self, *_given: Any, **_named: Any) -> NoReturn:
        raise EngineError(
            "that cannot be done to a task of a swarm: its container may be on another node",
            "`docker service ps SERVICE` says on which; `docker exec` works there",
        )

    ask = execute = freeze = thaw = attach = detach = _elsewhere
    limit_cpus = limit_memory = memory_used = start_helper = _elsewhere
