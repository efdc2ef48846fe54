"""Who writes what containers of this engine leave on the host, for single containers."""

from __future__ import annotations

import contextlib

from cluster_kit.engine import client
from cluster_kit.engine.address import address
from cluster_kit.engine.kind import caller, engine_kind


def caller_here() -> str:
    """`uid:gid` that is the caller in a container of the engine that answers.

    Raises:
        HostError: no engine answers.
        EngineError: it stopped answering.
    """
    with contextlib.closing(client.connect()) as engine:
        return caller(engine_kind(engine.info(), address()))
