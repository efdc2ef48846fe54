"""Local clusters for distributed TensorFlow, one container per task.

    import cluster_kit as ck

    outcome = ck.load("quickstart", worker=3).run()

See `cluster_kit.api`, and docs/python.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cluster_kit.version import __version__

if TYPE_CHECKING:
    from cluster_kit.api import (
        Cluster,
        Container,
        DeadlinePassed,
        EngineError,
        HostError,
        Interrupted,
        Job,
        KitError,
        ManifestError,
        Outcome,
        RunEvent,
        RunningCluster,
        Stopped,
        TrainingFailed,
        UsageError,
        cluster,
        load,
    )

__all__ = [
    "Cluster",
    "Container",
    "DeadlinePassed",
    "EngineError",
    "HostError",
    "Interrupted",
    "Job",
    "KitError",
    "ManifestError",
    "Outcome",
    "RunEvent",
    "RunningCluster",
    "Stopped",
    "TrainingFailed",
    "UsageError",
    "__version__",
    "cluster",
    "load",
]


def __getattr__(name: str) -> Any:
    """Returns a name of the API, imported at its first use: importing a submodule is fast."""
    if name in __all__:
        return getattr(import_module("cluster_kit.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
