"""Ensures that only one process on this host starts or watches a cluster at a time."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from cluster_kit.errors import HostError
from cluster_kit.host import Host
from cluster_kit.platforms.docker.docker_connection import address
from cluster_kit.platforms.engine import Engine
from cluster_kit.util import locks


class Watched(HostError):
    """Another process starts or watches the cluster."""


@contextlib.contextmanager
def claim(host: Host, engine: Engine, name: str, runs: Path) -> Iterator[None]:
    """Hold the lock of the cluster of this name on an engine during the `with` block: only its
    holder starts or watches the cluster.

    Args:
        runs: the folder of the cluster's runs, for the message to the next process that tries.
    Raises:
        Watched: another process holds it.
        HostError: the lock cannot be made.
        EngineError: the engine does not answer.
    """
    with contextlib.ExitStack() as held:
        key = lock_of(engine, name)
        now = datetime.fromtimestamp(host.clock.time())
        about = f"process {os.getpid()} since {now:%H:%M:%S}; its runs are in {runs}"
        try:
            held.enter_context(locks.lock(file_of(host, key), about))
            held.enter_context(host.locks.between_users(key, may_use_engine))
        except locks.Locked as locked:
            raise Watched(
                f"the cluster {name} is being started or watched by {locked.about or 'a process'}",
                f"`cluster-kit wait {name}` waits for its end, `cluster-kit status {name}` shows "
                f"it, `cluster-kit down {name}` ends it; with another `name` (--name OTHER, make: "
                "NAME=OTHER) a second one runs beside it",
            ) from None
        except OSError as error:
            raise no_lock(error) from None
        yield


def is_claimed(host: Host, engine: Engine, name: str) -> bool:
    """Whether a process starts or watches the cluster; raises EngineError."""
    key = lock_of(engine, name)
    with contextlib.suppress(OSError):
        if locks.is_locked(file_of(host, key)):
            return True
    return bool(host.locks.holder(key, may_use_engine))


def no_lock(error: OSError) -> HostError:
    """The error for a lock that cannot be created."""
    return HostError(
        f"the lock {error.filename} cannot be made: {error.strerror}",
        "free space or get access; XDG_RUNTIME_DIR can name a directory of your own, mode 0700",
    )


def lock_of(engine: Engine, name: str) -> str:
    """The lock of a cluster's name on an engine, whatever socket reaches the engine.

    Containers' names are unique per engine, so all users, workspaces and clones of this host share
    the lock.
    """
    identity = re.sub(r"\W", "", engine.identity())[:12]
    return f"cluster-kit-{identity or 'engine'}-{name}.lock"


def file_of(host: Host, key: str) -> Path:
    """The file of a lock; raises OSError if no directory can hold it."""
    return host.locks.directory() / key


def may_use_engine(user: int) -> bool:
    """Whether this user may use this host's engine; locks of users who may not are ignored."""
    path = Path(address().removeprefix("unix://") or "/var/run/docker.sock")
    try:
        about = path.stat()
        known = pwd.getpwuid(user)
        groups = os.getgrouplist(known.pw_name, known.pw_gid)
    except (OSError, KeyError):
        return user == 0
    return user in (0, about.st_uid) or about.st_gid in groups or bool(about.st_mode & 0o002)
