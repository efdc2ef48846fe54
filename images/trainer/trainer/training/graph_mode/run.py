"""`run` of job.py: one replica from its first word to its result."""

from __future__ import annotations

import sys

import tensorflow as tf

from trainer.events import Progress
from trainer.injected import mailbox
from trainer.servers import probe
from trainer.task import Task
from trainer.training import signals
from trainer.training.errors import PeerLost, in_short
from trainer.training.graph_mode import session
from trainer.training.graph_mode.graph.build import build
from trainer.training.graph_mode.job import GraphJob, GraphResult
from trainer.training.graph_mode.loop import Training
from trainer.training.graph_mode.options import GraphOptions
from trainer.training.graph_mode.replica import Replica, replica_of

LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)
GONE = (tf.errors.FailedPreconditionError, tf.errors.NotFoundError, tf.errors.CancelledError)
"""What a session meets on a ps that was started again: no variable, resource or queue of ours."""
PATIENCE_S = 30.0
TRIES = 3


def train(
    task: Task, job: GraphJob, options: GraphOptions, progress: Progress | None
) -> GraphResult:
    replica = replica_of(task, options, len(tf.config.list_physical_devices("GPU")))
    print(described(replica, options), flush=True)
    graph = build(job, options, replica, task.output)
    mailbox.wait_for_servers()
    config = session.session_config(task, replica)
    target = session.start(task, replica, config)
    training = Training(graph, options, replica, job, task.output, progress)
    file = task.output / "save-now" if replica.is_chief else None
    with signals.watched(training.terminated, training.save_by_hand, file):
        return recovering(training, replica, target, config)


def recovering(
    training: Training, replica: Replica, target: str, config: tf.compat.v1.ConfigProto
) -> GraphResult:
    """Train; after the loss of a ps go on in a new session, as long as that gets us further."""
    tries = 0
    while True:
        before = training.steps_made
        try:
            return training.attempt(target, config)
        except (*LOST, *GONE) as problem:
            if not replica.deployment.distributed or "No such file" in str(problem):
                raise
            tries = 1 if training.steps_made > before else tries + 1
            print(f"error: lost a ps ({in_short(problem)})", file=sys.stderr, flush=True)
            answer = probe.wait_for(replica.ps, PATIENCE_S)
            if isinstance(answer, probe.ServersMissing):
                lost = ", ".join(answer.tasks)
                raise PeerLost(f"the connection to {lost} was lost: {answer}") from problem
            if tries > TRIES:
                raise PeerLost(
                    f"the connection to {', '.join(replica.ps)} was lost {tries} times without a"
                    f" step in between ({in_short(problem)})"
                ) from problem


def described(replica: Replica, options: GraphOptions) -> str:
    deployment = replica.deployment
    devices = [deployment.clone_device(i) for i in range(deployment.num_clones)]
    where = ", ".join(device.rpartition("device:")[2] for device in devices)
    clones = f"{len(devices)} clones on {where}" if len(devices) > 1 else f"on {where}"
    if not deployment.distributed:
        return f"one replica, in this process; {clones}"
    waits = replica.gradients_per_round
    update = f"sync, {waits} of {replica.count} gradients a round" if waits else "async"
    return f"replica {replica.number} of {replica.count}, {len(replica.ps)} ps; {update}; {clones}"
