"""run(): trains a replica of a graph-mode job and returns its result."""

from __future__ import annotations

import sys

import tensorflow as tf

from trainer.agent.injected import mailbox
from trainer.agent.progress_file import Progress
from trainer.agent.servers import probe
from trainer.agent.task import Task
from trainer.programs.training import program
from trainer.programs.training.graph_mode import session_start
from trainer.programs.training.graph_mode.job import GraphJob, GraphResult
from trainer.programs.training.graph_mode.options import GraphOptions
from trainer.programs.training.graph_mode.replica import Replica, replica_of
from trainer.programs.training.graph_mode.replica_graph import build
from trainer.programs.training.graph_mode.training_session import Training
from trainer.programs.training.program import PeerLost, headline

LOST = (tf.errors.UnavailableError, tf.errors.AbortedError)
GONE = (tf.errors.FailedPreconditionError, tf.errors.NotFoundError, tf.errors.CancelledError)
"""Errors of a session on a restarted ps: variables, resources and queues are missing."""
PATIENCE_S = 30.0
TRIES = 3


def run(task: Task, job: GraphJob, options: GraphOptions, progress: Progress | None) -> GraphResult:
    """Train to the end, from the newest checkpoint in `<output>/checkpoints` if there is one.

    A single task trains in this process. With several replicas (chief and workers) and ps, each
    replica runs this function: the leader initialises or restores the variables, saves, and writes
    summaries; the others wait for it. Call this function once per process, before anything else has
    used a GPU.

    Files that the leader writes: `checkpoints/model.ckpt-<global step>` (variables by their names),
    `tensorboard/train`. `touch <output>/save-now`, or SIGUSR1, saves at once into
    `checkpoints/manual.ckpt-<step>`, which is kept. On SIGTERM the leader saves, and the process
    ends with 143.

    Each replica writes `step` events about once a second and at the first step. The program writes
    the leader's figures (GraphResult.metrics) together with its own.

    Raises:
        ContractError: several replicas without a ps, or tasks that cannot run this.
        PeerLost: a ps or the chief was lost and did not come back in time.
        Diverged: a loss is not finite; the last good checkpoint is kept.
        CheckpointError: the existing checkpoints are damaged, or belong to another model.
    """
    replica = replica_of(task, options, len(tf.config.list_physical_devices("GPU")))
    print(described(replica), flush=True)
    graph = build(job, options, replica, task.output)
    mailbox.wait_for_servers()
    config = session_start.session_config(task, replica)
    target = session_start.start_server(task, replica, config)
    training = Training(graph, options, replica, job, task.output, progress)
    file = task.output / "save-now" if replica.is_chief else None
    with program.watched(training.terminated, training.save_by_hand, file):
        return recovering(training, replica, target, config)


def recovering(
    training: Training, replica: Replica, target: str, config: tf.compat.v1.ConfigProto
) -> GraphResult:
    """Train; if a ps is lost, continue in a new session, as long as sessions make progress."""
    tries = 0
    while True:
        before = training.steps_made
        try:
            return training.attempt(target, config)
        except (*LOST, *GONE) as problem:
            if not replica.deployment.distributed or "No such file" in str(problem):
                raise
            tries = 1 if training.steps_made > before else tries + 1
            print(f"error: lost a ps ({headline(problem)})", file=sys.stderr, flush=True)
            answer = probe.wait_for(replica.ps, PATIENCE_S)
            if isinstance(answer, probe.ServersMissing):
                lost = ", ".join(answer.tasks)
                raise PeerLost(f"the connection to {lost} was lost: {answer}") from problem
            if tries > TRIES:
                raise PeerLost(
                    f"the connection to {', '.join(replica.ps)} was lost {tries} times without a"
                    f" step in between ({headline(problem)})"
                ) from problem


def described(replica: Replica) -> str:
    """Return a line for the log: the replica, its kind of update, and its devices."""
    deployment = replica.deployment
    devices = [deployment.clone_device(i) for i in range(deployment.num_clones)]
    where = ", ".join(device.rpartition("device:")[2] for device in devices)
    clones = f"{len(devices)} clones on {where}" if len(devices) > 1 else f"on {where}"
    if not deployment.distributed:
        return f"one replica, in this process; {clones}"
    waits = replica.gradients_per_round
    update = f"sync, {waits} of {replica.count} gradients a round" if waits else "async"
    return f"replica {replica.number} of {replica.count}, {len(replica.ps)} ps; {update}; {clones}"
