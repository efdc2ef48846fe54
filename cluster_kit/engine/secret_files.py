"""The values of secrets that containers have as files of this host."""

from __future__ import annotations

import contextlib
from pathlib import Path, PurePosixPath

from cluster_kit.cluster import SECRETS
from cluster_kit.util.masking import parts

MOST_BYTES = 64 * 1024


def secret_in(source: str, target: str) -> set[str]:
    """What is to be masked of a file that is mounted at `target`; nothing if it is no secret.

    It is as much as can be read: a run that has ended is not to fail for a file that is gone.
    """
    if not source or PurePosixPath(target).parent != PurePosixPath(SECRETS):
        return set()
    with contextlib.suppress(OSError, ValueError), Path(source).open("rb") as file:
        return parts(file.read(MOST_BYTES).decode("utf-8", errors="replace"))
    return set()
