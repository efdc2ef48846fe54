"""What cannot be done to a container that may be on another node."""

from __future__ import annotations

from cluster_kit.engine.elsewhere import Elsewhere


class Unreachable(Elsewhere):
    """Each of these methods of an engine raises EngineError: no API of a swarm reaches inside."""

    _refusal = (
        "that cannot be done to a task of a swarm: its container may be on another node",
        "`docker service ps SERVICE` says on which; `docker exec` works there",
    )
