"""GPUs go to one cluster at a time: which are free is known for certain only at the start."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import datetime

from cluster_kit.errors import HostError
from cluster_kit.host import Host
from cluster_kit.platforms.engine import Engine
from cluster_kit.resolved import Cluster
from cluster_kit.run.starting import claim
from cluster_kit.run.starting.prepare import Prepared, prepare_again
from cluster_kit.util import locks

WAIT_S = 120.0
"""As long as the engine may take to create and start the containers of another cluster."""


@contextlib.contextmanager
def turn(host: Host, engine: Engine, cluster: Cluster) -> Iterator[None]:
    """Be the only one on this host who takes GPUs of an engine, in the `with` block.

    A cluster without GPUs waits for nobody.

    Raises:
        HostError: another start had its turn for more than WAIT_S, or the lock cannot be made.
        EngineError: the engine does not answer.
    """
    with contextlib.ExitStack() as held:
        if any(task.gpus for task in cluster.tasks):
            key = claim.lock_of(engine, ".gpus")  # no name of a cluster begins with a dot
            now = datetime.fromtimestamp(host.clock.time())
            about = f"process {os.getpid()} ({cluster.name}) since {now:%H:%M:%S}"
            try:
                held.enter_context(locks.lock(claim.file_of(host, key), about, wait_s=WAIT_S))
                held.enter_context(host.locks.between_users(key, claim.may_use_engine, WAIT_S))
            except locks.Locked as locked:
                raise HostError(
                    f"for {WAIT_S:.0f} s GPUs have been handed out by {locked.about}",
                    "end that process if it hangs, then try again",
                ) from None
            except OSError as error:
                raise claim.no_lock(error) from None
        yield


def planned_now(host: Host, prepared: Prepared, engine: Engine) -> Prepared:
    """The same plan, or a new one if other clusters have taken or freed GPUs since it was made.

    Raises:
        ManifestError: there are no longer enough.
        EngineError: the engine does not answer.
    """
    if not prepared.facts.gpus or engine.gpus_taken() == prepared.facts.gpus_taken:
        return prepared
    return prepare_again(host, prepared, engine)
