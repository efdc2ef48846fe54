"""Starts a session: this replica's server, the initial values, and the thread of rounds.

The server is TensorFlow's, in this process; the ps are servers of the kit. The chief restores or
initialises the variables, and the others wait for it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time

import tensorflow as tf

from trainer.agent.errors import ServerError
from trainer.agent.servers import probe
from trainer.agent.task import Task
from trainer.programs.training.graph_mode.checkpoint_saver import CheckpointManager
from trainer.programs.training.graph_mode.replica import Replica
from trainer.programs.training.graph_mode.replica_graph import TrainingGraph
from trainer.programs.training.graph_mode.sync_replicas import STOP, start_rounds

tf1 = tf.compat.v1
WAIT_FOR_OTHERS_S = 30.0
POLL_S = 0.1
QUIET_S = 2.0


def begin_as_chief(
    session: tf1.Session, graph: TrainingGraph, replica: Replica, manager: CheckpointManager
) -> None:
    """Restore or initialise the variables, then let the other replicas begin."""
    restored = graph.checkpoints.restore(session)
    if restored is None:
        session.run(graph.initialize)
    session.run(graph.initialize_run)
    if restored:
        print(f"continuing at global step {restored.step} ({restored.name})", flush=True)
    manager.begin(session, restored)
    step, end_at = map(int, session.run(graph.now))
    if (
        replica.deployment.distributed and step < end_at
    ):  # otherwise the other replicas may already have ended
        wait_for_others(replica)
    if graph.rounds:
        start_rounds(graph.rounds, step, session)


def wait_for_others(replica: Replica) -> None:
    """Wait at most WAIT_FOR_OTHERS_S for the other replicas, so that all start training
    together."""
    others = replica.others
    print(f"waiting for {', '.join(others)}", flush=True)
    answer = probe.wait_for(others, WAIT_FOR_OTHERS_S)
    if isinstance(answer, probe.ServersMissing):
        print(f"not there yet: {answer}", file=sys.stderr, flush=True)


def wait_for_chief(session: tf1.Session, graph: TrainingGraph, replica: Replica) -> None:
    """Block until every shared variable has a value."""
    is_shown, since = False, time.monotonic()
    while len(session.run(graph.uninitialized)):
        time.sleep(POLL_S)
        if not is_shown and time.monotonic() - since > QUIET_S:
            print(f"waiting for {replica.chief} to initialise", flush=True)
            is_shown = True


def wait_for_step(session: tf1.Session, graph: TrainingGraph, begin: int) -> None:
    """Block until the job reaches global step `begin`, or ends."""
    step, end_at = map(int, session.run(graph.now))
    if step < min(begin, end_at):
        print(f"waiting for global step {begin} (now {step})", flush=True)
    while step < min(begin, end_at):
        time.sleep(POLL_S)
        step, end_at = map(int, session.run(graph.now))


def session_config(task: Task, replica: Replica) -> tf1.ConfigProto:
    """Return a config with the CPU devices that clones need, and only this task and the ps visible.

    Without the device filters a session waits for every worker, and hangs if a worker is lost.

    On CPUs, TensorFlow's graph optimizer takes seconds for each new session and saves no time in a
    step (docs/speed.md).
    """
    deployment = replica.deployment
    config = tf1.ConfigProto(allow_soft_placement=True)
    clones = deployment.num_clones if deployment.clone_on_cpu else 1
    config.device_count["CPU"] = max(clones, task.simulate_gpus, 1)
    if deployment.clone_on_cpu:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    if deployment.distributed:
        config.device_filters.extend([deployment.ps_device, deployment.worker_device])
    if task.gpu_memory_mb is None:
        config.gpu_options.allow_growth = True
    return config


def start_server(task: Task, replica: Replica, config: tf1.ConfigProto) -> str:
    """Start a server and return its target for sessions; '' if this replica is alone."""
    if not replica.deployment.distributed:
        return ""
    probe.check_port(task.address)
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
"""Servers of this process: a server must live as long as the process, and would end with its
object."""


class RoundsThread(threading.Thread):
    """Applies rounds until the last step, or `end`; `failure` is the error that ended it early."""

    def __init__(
        self, session: tf1.Session, graph: TrainingGraph, manager: CheckpointManager, end_at: int
    ) -> None:
        super().__init__(name="rounds", daemon=True)
        self.failure: Exception | None = None
        self._session = session
        self._graph = graph
        self._manager = manager
        self._end_at = end_at
        self._ended = threading.Event()

    def run(self) -> None:
        apply = self._session.make_callable(self._graph.rounds.chief.apply)
        try:
            step = int(self._session.run(self._graph.counters.global_step))
            while step < self._end_at and not self._ended.is_set():
                step = int(apply())
                if step < self._end_at:
                    self._manager.between_updates(step)
        except Exception as problem:  # noqa: BLE001 - the main thread raises any exception
            if not self._ended.is_set():
                self.failure = problem
                with contextlib.suppress(tf.errors.OpError):
                    stop_all_replicas(self._session, self._graph)

    def end(self) -> None:
        """Stop making rounds; a round that waits for gradients may still finish."""
        self._ended.set()


def stop_all_replicas(session: tf1.Session, graph: TrainingGraph) -> None:
    """Wake all replicas that wait for a round, since there will be no further round."""
    session.run(graph.controls.end, {graph.controls.new_end: 0})
    if graph.rounds:
        session.run(graph.rounds.send, {graph.rounds.new_token: STOP})
