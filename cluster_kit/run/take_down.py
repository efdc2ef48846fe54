"""Ends a cluster from outside. If a process watches it, that process judges it and saves its
logs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

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

SAVES_S = 120.0
"""Seconds that the watching process gets to judge the cluster and to save its logs: a million lines
take half a minute."""
SAYS_S = 3.0
POLL_S = 0.2


def take_down(
    host: Host,
    engine: Engine,
    name: str,
    request: str = user_requests.DOWN,
    say: Callable[[str], object] = log.debug,
) -> int:
    """Stop and remove a cluster; return the number of its containers.

    Args:
        request: what the run records as the reason (`user_requests`).
        say: gets a line if the process that watches the cluster takes long.
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
        began, is_said = host.clock.monotonic(), False
        while (passed := host.clock.monotonic() - began) < SAVES_S and is_claimed(
            host, engine, name
        ):
            if passed > SAYS_S and not is_said:
                say(f"{name}: the process that watches it saves its logs (at most {SAVES_S:.0f} s)")
                is_said = True
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
