"""The chief's side of sync: a thread that makes one update of each round's gradients."""

from __future__ import annotations

import contextlib
import threading

import tensorflow as tf

from trainer.programs.training.graph_mode.graph.sync_replicas import STOP
from trainer.programs.training.graph_mode.graph.training_graph import TrainingGraph
from trainer.programs.training.graph_mode.saving.manager import CheckpointManager

tf1 = tf.compat.v1


class RoundsThread(threading.Thread):
    """Applies rounds until the last step, or `end`; `failure` is what ended it before."""

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
        apply = self._session.make_callable(self._graph.rounds.apply)
        try:
            step = int(self._session.run(self._graph.counters.global_step))
            while step < self._end_at and not self._ended.is_set():
                step = int(apply())
                if step < self._end_at:
                    self._manager.between_updates(step)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the main thread raises it
            if not self._ended.is_set():
                self.failure = problem
                with contextlib.suppress(tf.errors.OpError):
                    stop_all_replicas(self._session, self._graph)

    def end(self) -> None:
        """No further round, after the one that waits for gradients, if they come."""
        self._ended.set()


def stop_all_replicas(session: tf1.Session, graph: TrainingGraph) -> None:
    """Wake all replicas that wait for a round: there will be none."""
    session.run(graph.controls.end, {graph.controls.new_end: 0})
    if graph.rounds:
        session.run(graph.rounds.send, {graph.rounds.new_token: STOP})
