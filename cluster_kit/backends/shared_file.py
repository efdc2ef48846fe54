"""What a cluster's tasks have in common, as one file that each is given. Pure.

A swarm copies an environment into every service, Kubernetes into every pod; what grows with the
cluster is therefore in this file: a config of the swarm, a ConfigMap.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from cluster_kit.backends.variables import GROWING, TRAINING, shared_variables
from cluster_kit.cluster import Cluster, Task
from cluster_kit.plan.tasks import cluster_spec
from cluster_kit.roles import ROLES

FILE = "cluster.json"
"""Its name beside the stack file."""
TARGET = "/run/cluster-kit/cluster.json"
"""Its path in every container."""


def spec_text(cluster: Cluster) -> str:
    """Returns the file's text: TF_CONFIG's cluster, and the variables that grow with it."""
    environment = shared_variables(cluster)
    variables = {name: environment[name] for name in GROWING}
    return json.dumps({"cluster": cluster_spec(cluster), "variables": variables}) + "\n"


def config_name(cluster: Cluster, text: str) -> str:
    """The config's name in the swarm: another one for each content, since configs never change."""
    return f"{cluster.project}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def without_shared(task: Task, own: Mapping[str, str]) -> dict[str, str]:
    """A task's own variables without what the file has; an evaluator's TF_CONFIG is its own."""
    in_file = TRAINING if ROLES[task.role].sidecar else "TF_CONFIG"
    return {name: value for name, value in own.items() if name != in_file}
