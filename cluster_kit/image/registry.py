"""The name by which nodes take an image from a registry."""

from __future__ import annotations

from cluster_kit.errors import EngineError
from cluster_kit.util.process import run


def tag_image(image: str, name: str) -> None:
    """Give an image of this host a further name; raises EngineError."""
    done = run(["docker", "tag", image, name])
    if not done.ok:
        raise EngineError(
            f"{image} cannot be called {name}: {done.errors.strip()}", "mend `kubernetes.registry`"
        )
