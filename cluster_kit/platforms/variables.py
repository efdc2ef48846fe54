"""The environment variables of a task; `contract.interface` says what each means. Pure."""

from __future__ import annotations

import dataclasses
import json
import secrets

from cluster_kit.plan.tasks import cluster_spec
from cluster_kit.programs.style import has_estimators
from cluster_kit.resolved import OWNER, Cluster, Task
from cluster_kit.roles import ROLES

SHARED = "CLUSTER_KIT_SHARED"
"""The path of a file that has the variables in GROWING, and TF_CONFIG's cluster, for all tasks."""
BEACON_SECRET = "CLUSTER_KIT_BEACON_SECRET"
"""The secret by which the tasks of a run know each other: made at `up`, and in no rendered file."""
TRAINING = "CLUSTER_KIT_TRAINING"
"""The training cluster, for an evaluator: an Estimator demands it."""
GROWING = ("CLUSTER_KIT_SERVERS", "NO_PROXY", "no_proxy")
"""The shared variables that name every task."""
NO_GPU = "-1"
"""The value by which CUDA sees no device."""


def shared_variables(cluster: Cluster) -> dict[str, str]:
    """Returns the variables that all tasks of a cluster have."""
    deadlines = cluster.deadlines
    switches = {"CLUSTER_KIT_OLD_API": cluster.tf1, "CLUSTER_KIT_OWN_SERVER": cluster.own_servers}
    return {
        **{name: "on" for name, on in switches.items() if on},
        "CLUSTER_KIT_BEACON": cluster.beacon,
        "CLUSTER_KIT_DATA": cluster.data,
        "CLUSTER_KIT_EVALUATOR_GRACE_S": f"{deadlines.evaluator_grace:.15g}",
        "CLUSTER_KIT_GPU_CHECK": "on" if cluster.gpu_check else "off",
        "CLUSTER_KIT_JOB_DEADLINE_S": f"{deadlines.job:.15g}",
        "CLUSTER_KIT_LEADER": cluster.leader.name,
        "CLUSTER_KIT_RETRIES": str(cluster.retries),
        "CLUSTER_KIT_SERVER": cluster.server,
        "CLUSTER_KIT_SERVERS": ",".join(task.name for task in cluster.tasks if task.serves),
        "CLUSTER_KIT_SILENT_S": f"{deadlines.silent:.15g}",
        "CLUSTER_KIT_STALL_S": "auto" if deadlines.stall is None else f"{deadlines.stall:.15g}",
        "CLUSTER_KIT_START_DEADLINE_S": f"{deadlines.start:.15g}",
        "NO_PROXY": no_proxy(cluster),
        "no_proxy": no_proxy(cluster),
    }


def new_secret() -> dict[str, str]:
    """Returns BEACON_SECRET with a new random value."""
    return {BEACON_SECRET: secrets.token_hex(16)}


def no_proxy(cluster: Cluster) -> str:
    """The hosts that proxies are not used for: the cluster's own gRPC must not go through them."""
    domains = dict.fromkeys(task.host.partition(".")[2] for task in cluster.tasks if task.host)
    if domains:  # whatever ends so: all tasks' names do
        return ",".join(["localhost", "127.0.0.1", *(f".{domain}" for domain in domains)])
    names = [task.name for task in cluster.tasks] if cluster.addressing == "name" else []
    return ",".join(["localhost", "127.0.0.1", str(cluster.subnet), *names])


def own_variables(cluster: Cluster, task: Task, config: str, *, leads: bool) -> dict[str, str]:
    """Returns one task's variables: the manifest's, overridden by the kit's own, sorted by name.

    Args:
        config: the task's TF_CONFIG.
        leads: whether it is the cluster's leader.
    """
    # One bridge network, one interface: NCCL would otherwise try them all.
    bridged = task.gpus and not cluster.host_network
    variables = {"NCCL_SOCKET_IFNAME": "eth0"} if bridged else {}
    variables |= task.environment
    for key in {"NO_PROXY", "no_proxy"} & variables.keys():
        variables[key] = f"{variables[key]},{no_proxy(cluster)}"
    variables |= {"CLUSTER_KIT_TASK": task.name, "TF_CONFIG": config}
    if ROLES[task.role].sidecar:
        # It is alone in its own TF_CONFIG, which has no server.
        variables["CLUSTER_KIT_SERVERS"] = ""
        # Which TensorFlow is in an image of one's own is not known here.
        if cluster.variant is None or has_estimators(cluster.tensorflow):
            variables[TRAINING] = json.dumps(cluster_spec(cluster))
    if task.secret_files:
        variables["CLUSTER_KIT_SECRETS"] = json.dumps(
            {
                name: {"variable": variable, "stays": variable in task.secrets}
                for name, variable in task.secret_files
            }
        )
    if task.debug:
        variables["CLUSTER_KIT_DEBUG"] = str(task.debug)
    if task.bandwidth is not None:
        variables["CLUSTER_KIT_BANDWIDTH_BPS"] = str(task.bandwidth)
    if task.bandwidth is not None or cluster.user == OWNER:
        variables["CLUSTER_KIT_USER"] = cluster.user
    variables |= _gpu_environment(cluster, task)
    if leads and cluster.profile:
        variables["CLUSTER_KIT_PROFILE"] = json.dumps(dataclasses.asdict(cluster.profile))
    if leads and (promises := {t.name: _promised(t) for t in cluster.tasks if t.serves and t.gpus}):
        variables["CLUSTER_KIT_PROMISES"] = json.dumps(promises)
    return dict(sorted(variables.items()))


def _promised(task: Task) -> list[dict[str, str]]:
    """A task's GPUs as the image reads them."""
    return [dataclasses.asdict(gpu) for gpu in task.gpus_promised]


def _gpu_environment(cluster: Cluster, task: Task) -> dict[str, str]:
    """The variables about a task's GPUs: which it must see, and its memory limit on them."""
    variables = {}
    if task.gpus:
        variables["CLUSTER_KIT_GPUS"] = json.dumps(_promised(task))
    else:
        variables["CUDA_VISIBLE_DEVICES"] = NO_GPU
        if ROLES[task.role].gpus == "pool" and cluster.simulate_gpus:
            variables["CLUSTER_KIT_SIMULATE_GPUS"] = str(cluster.simulate_gpus)
    if task.gpu_memory_mib is not None:
        variables["CLUSTER_KIT_GPU_MEMORY_MB"] = str(task.gpu_memory_mib)
    return variables
