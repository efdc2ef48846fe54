"""One process starts or watches a cluster at a time, wherever on this host it was called."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from cluster_kit.engine.interface import Engine
from cluster_kit.errors import HostError
from cluster_kit.util import locks

LOCKS = Path("/tmp")
"""For all users, workspaces and clones of this host: containers' names are the engine's."""


class Watched(HostError):
    """Another process starts or watches the cluster."""


@contextlib.contextmanager
def claim(engine: Engine, name: str, runs: Path) -> Iterator[None]:
    """Be the one who starts or watches an engine's cluster of this name, in the `with` block.

    Args:
        runs: the folder of the cluster's runs, for whoever asks next.
    Raises:
        Watched: another process is.
        HostError: the lock cannot be made.
        EngineError: the engine does not answer.
    """
    with contextlib.ExitStack() as held:
        file = lock_of(engine, name)
        about = f"process {os.getpid()} since {datetime.now():%H:%M:%S}; its runs are in {runs}"
        try:
            held.enter_context(locks.lock(file, about))
        except locks.Locked as locked:
            raise Watched(
                f"the cluster {name} is being started or watched by {locked.about or 'a process'}",
                f"`cluster-kit wait {name}` waits for its end, `cluster-kit status {name}` shows "
                f"it, `cluster-kit down {name}` ends it, `--name OTHER` runs one beside it",
            ) from None
        except OSError as error:
            raise no_lock(file, error) from None
        yield


def is_claimed(engine: Engine, name: str) -> bool:
    """Whether a process starts or watches the cluster; raises EngineError."""
    return locks.is_locked(lock_of(engine, name))


def no_lock(file: Path, error: OSError) -> HostError:
    """What to say of a lock that cannot be made."""
    return HostError(
        f"the lock {file} cannot be made: {error.strerror}", "make room there, or access"
    )


def lock_of(engine: Engine, name: str) -> Path:
    """The lock of a cluster's name on one engine, by whichever socket it is reached."""
    identity = re.sub(r"\W", "", engine.identity())[:12]
    return LOCKS / f"cluster-kit-{identity or 'engine'}-{name}.lock"
