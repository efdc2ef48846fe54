"""The kit's Python API: the steps of the command line, without output.

A step that fails raises an error of `cluster_kit.errors`. A training that fails raises nothing: its
`Outcome` has the failure.
"""

from cluster_kit.api.job import Job, cluster, load
from cluster_kit.api.running import RunEvent, RunningCluster
from cluster_kit.errors import (
    DeadlinePassed,
    EngineError,
    HostError,
    Interrupted,
    KitError,
    ManifestError,
    Stopped,
    TrainingFailed,
    UsageError,
)
from cluster_kit.platforms.engine import Container
from cluster_kit.resolved import Cluster
from cluster_kit.run.outcome import Outcome

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
    "cluster",
    "load",
]
