"""Local clusters for distributed TensorFlow, one container per task.

    import cluster_kit as ck

    outcome = ck.load("quickstart", worker=3).run()

See `cluster_kit.api`, and docs/python.md.
"""

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
    load,
)
from cluster_kit.version import __version__

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
    "load",
]
