"""The one place that knows the shape of TF_CONFIG.

Source: `tf.distribute.cluster_resolver.TFConfigClusterResolver`. The evaluator is never part of the
training cluster: with it in there, ParameterServerStrategy waits for ever.
"""

from __future__ import annotations

import json

from cluster_kit.cluster import Cluster, Role, Task

_TRAINING: tuple[Role, ...] = ("chief", "worker", "ps")


def cluster_spec(cluster: Cluster) -> dict[str, list[str]]:
    """TensorFlow's map from job name to addresses, evaluator left out."""
    jobs = {role: [cluster.address(task) for task in cluster.of(role)] for role in _TRAINING}
    return {role: addresses for role, addresses in jobs.items() if addresses}


def tf_configs(cluster: Cluster) -> dict[str, str]:
    """TF_CONFIG of every task, by task name, as JSON text.

    The training cluster's part is the same in all of them and is made once: a thousand tasks would
    otherwise write a thousand addresses a thousand times.
    """
    training = json.dumps(cluster_spec(cluster))
    return {
        task.name: _document(
            json.dumps({"evaluator": [cluster.address(task)]})
            if task.role == "evaluator"
            else training,
            task,
        )
        for task in cluster.tasks
    }


def _document(spec: str, task: Task) -> str:
    identity = json.dumps({"type": task.role, "index": task.index})
    return f'{{"cluster": {spec}, "task": {identity}}}'
