"""One process starts or watches a cluster at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cluster_kit.errors import HostError
from cluster_kit.util import locks

_LOCK = ".lock"


class Watched(HostError):
    """Another process starts or watches the cluster."""


@contextlib.contextmanager
def claim(runs: Path, name: str) -> Iterator[None]:
    """Be the one who starts or watches a cluster, in the `with` block.

    Args:
        runs: the folder of the cluster's runs.
    Raises:
        Watched: another process is.
        HostError: the folder cannot be written.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(locks.lock(runs / _LOCK))
        except locks.Locked as locked:
            raise Watched(
                f"the cluster {name} is being started or watched by process {locked.holder or '?'}",
                f"`cluster-kit wait {name}` waits for its end, `cluster-kit status {name}` shows "
                f"it, `cluster-kit down {name}` ends it, `--name OTHER` runs one beside it",
            ) from None
        except OSError as error:
            raise HostError(
                f"{runs} cannot be written: {error.strerror}", "make room there, or write access"
            ) from None
        yield
