"""The begin of a session: the chief restores or initialises, the others wait for it."""

from __future__ import annotations

import sys
import time

import tensorflow as tf

from trainer.agent.servers import probe
from trainer.programs.training.graph_mode.graph.sync_replicas import start_rounds
from trainer.programs.training.graph_mode.graph.training_graph import TrainingGraph
from trainer.programs.training.graph_mode.replica import Replica
from trainer.programs.training.graph_mode.saving.manager import CheckpointManager

tf1 = tf.compat.v1
WAIT_FOR_OTHERS_S = 30.0
POLL_S = 0.1
QUIET_S = 2.0


def begin_as_chief(
    session: tf1.Session, graph: TrainingGraph, replica: Replica, manager: CheckpointManager
) -> None:
    """Restore or initialise, then let the others begin."""
    restored = graph.checkpoints.restore(session)
    if restored is None:
        session.run(graph.initialize)
    session.run(graph.initialize_run)
    if restored:
        print(f"going on at global step {restored.step} ({restored.name})", flush=True)
    manager.begin(session, restored)
    step, end_at = map(int, session.run(graph.now))
    if replica.deployment.distributed and step < end_at:  # else they may have left for good
        wait_for_others(replica)
    if graph.rounds:
        start_rounds(graph.rounds, graph.counters.global_step, session)


def wait_for_others(replica: Replica) -> None:
    """Wait, at most WAIT_FOR_OTHERS_S: shares and speeds mean more if training starts together."""
    others = replica.others
    print(f"waiting for {', '.join(others)}", flush=True)
    answer = probe.wait_for(others, WAIT_FOR_OTHERS_S)
    if isinstance(answer, probe.ServersMissing):
        print(f"not there yet: {answer}", file=sys.stderr, flush=True)


def wait_for_chief(session: tf1.Session, graph: TrainingGraph, replica: Replica) -> None:
    """Block until every shared variable has a value."""
    said, since = False, time.monotonic()
    while len(session.run(graph.uninitialized)):
        time.sleep(POLL_S)
        if not said and time.monotonic() - since > QUIET_S:
            print(f"waiting for {replica.chief} to initialise", flush=True)
            said = True


def wait_for_step(session: tf1.Session, graph: TrainingGraph, begin: int) -> None:
    """Block until the job is at global step `begin`, or at its end."""
    step, end_at = map(int, session.run(graph.now))
    if step < min(begin, end_at):
        print(f"waiting for global step {begin} (now {step})", flush=True)
    while step < min(begin, end_at):
        time.sleep(POLL_S)
        step, end_at = map(int, session.run(graph.now))
