"""One process of this user builds an image, all others wait for it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

from cluster_kit.image.build import Say
from cluster_kit.util import locks

WAIT_S = 3600.0


@contextlib.contextmanager
def turn(image: str, say: Say) -> Iterator[None]:
    """A block in which no other process of this user builds the image, or one on top of it."""
    name = f"cluster-kit-build-{re.sub('[^a-z0-9.-]', '-', image)}.lock"
    about = f"process {os.getpid()}"
    with contextlib.ExitStack() as held:
        try:
            file = locks.own_directory() / name
            try:
                held.enter_context(locks.lock(file, about))
            except locks.Locked as other:
                say(f"waiting for {other.about or 'another process'}, which builds {image}")
                held.enter_context(locks.lock(file, about, WAIT_S))
        except (OSError, locks.Locked):
            say(f"{name} cannot be locked: another process may build the same")
        yield
