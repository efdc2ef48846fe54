"""Ends a cluster from outside. If a process watches it, that process judges it and saves its
logs."""

from __future__ import annotations

import contextlib
import logging

from rich.console import Console

from cluster_kit.errors import KitError
from cluster_kit.host import Host
from cluster_kit.observe import user_requests
from cluster_kit.platforms.engine import Engine
from cluster_kit.run.cluster_lock import is_claimed
from cluster_kit.run.run_directory import run_of, unjudged
from cluster_kit.show.view import QuietView
from cluster_kit.workspace import Workspace

log = logging.getLogger(__name__)

SAVES_S = 15.0
"""Seconds that the watching process gets to judge the cluster and to save its logs."""
POLL_S = 0.2


def take_down(host: Host, engine: Engine, name: str, request: str = user_requests.DOWN) -> int:
    """Stop and remove a cluster; return the number of its containers.

    Args:
        request: what the run records as the reason (`user_requests`).
    Raises:
        EngineError: the engine cannot remove it, or does not answer.
    """
    containers, sidecars = engine.containers(name), engine.sidecars(name)
    if containers:
        with contextlib.suppress(OSError):  # only a stopped cluster needs the request
            user_requests.write(
                run_of(containers).path,
                request,
                [one.name for one in containers],
                host.clock.time(),
            )
    if is_claimed(host, engine, name):
        engine.stop(name)
        until = host.clock.monotonic() + SAVES_S
        while host.clock.monotonic() < until and is_claimed(host, engine, name):
            host.clock.sleep(POLL_S)
    elif containers and unjudged(containers):
        from cluster_kit.run.attach import attach  # this import takes a third of the time of `down`

        engine.stop(name)
        workspace = Workspace(run_of(containers).workspace)
        try:
            attach(host, name, workspace, QuietView(Console(quiet=True)), keep=False)
        except KitError:
            pass  # it is removed even without a verdict
        except Exception as error:  # noqa: BLE001 a bug here must not keep it from being removed
            log.warning("%s cannot be judged and is removed without: %r", name, error)
    engine.remove(name)
    if containers:
        run_of(containers).open_to_others()
    return len(containers) + len(sidecars)
