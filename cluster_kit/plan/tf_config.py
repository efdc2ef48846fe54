"""TF_CONFIG of every task; no other module knows its format.

Source: `tf.distribute.cluster_resolver.TFConfigClusterResolver`. The evaluator is never part of the
training cluster's spec: ParameterServerStrategy would wait for it for ever.
"""

from __future__ import annotations

import json

from cluster_kit.cluster import Cluster
from cluster_kit.roles import ROLES


def cluster_spec(cluster: Cluster) -> dict[str, list[str]]:
    """TensorFlow's map from job name to addresses, evaluator left out."""
    jobs = {
        cluster.job(role): [cluster.address(task) for task in cluster.of(role)]
        for role, row in ROLES.items()
        if not row.sidecar
    }
    return {job: addresses for job, addresses in jobs.items() if addresses}


def tf_configs(cluster: Cluster) -> dict[str, str]:
    """TF_CONFIG of every task, by task name, as JSON text.

    The training cluster's spec is the same in all of them and is rendered once: a thousand tasks
    would otherwise render a thousand addresses each.
    """
    training = json.dumps(cluster_spec(cluster))
    return {
        task.name: _document(
            json.dumps({cluster.job(task.role): [cluster.address(task)]})
            if ROLES[task.role].sidecar
            else training,
            cluster.job(task.role),
            task.index,
        )
        for task in cluster.tasks
    }


def _document(spec: str, job: str, index: int) -> str:
    identity = json.dumps({"type": job, "index": index})
    return f'{{"cluster": {spec}, "task": {identity}}}'
