"""The replica's own TensorFlow server, in this process; the ps are servers of the kit."""

from __future__ import annotations

import tensorflow as tf

from trainer.agent.errors import ServerError
from trainer.agent.servers.ports import check_port
from trainer.agent.task import Task
from trainer.programs.training.graph_mode.replica import Replica

tf1 = tf.compat.v1


def session_config(task: Task, replica: Replica) -> tf1.ConfigProto:
    """As many CPU devices as clones need, and no other task in sight than this one and the ps.

    Without the filters a session would wait for every worker, and hang with the first lost one.
    """
    deployment = replica.deployment
    config = tf1.ConfigProto(allow_soft_placement=True)
    clones = deployment.num_clones if deployment.clone_on_cpu else 1
    config.device_count["CPU"] = max(clones, task.simulate_gpus, 1)
    if deployment.distributed:
        config.device_filters.extend([deployment.ps_device, deployment.worker_device])
    if task.gpu_memory_mb is None:
        config.gpu_options.allow_growth = True
    return config


def start(task: Task, replica: Replica, config: tf1.ConfigProto) -> str:
    """The target for sessions: of a new server, '' if this replica is alone."""
    if not replica.deployment.distributed:
        return ""
    check_port(task.address)
    try:
        server = tf.distribute.Server(
            tf.train.ClusterSpec({job: list(hosts) for job, hosts in task.cluster.items()}),
            job_name=task.job,
            task_index=task.index,
            protocol="grpc",
            config=config,
        )
    except tf.errors.OpError as problem:
        raise ServerError(f"no TensorFlow server on {task.address}: {problem.message}") from problem
    KEPT.append(server)
    return server.target


KEPT: list[tf.distribute.Server] = []
"""A server ends with the process; letting go of the object would end it earlier."""
