"""One training step of this replica: everything it needs to know comes back with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf

from trainer.programs.training.graph_mode.graph.sync_replicas import STEP_BITS, STOP
from trainer.programs.training.graph_mode.graph.training_graph import TrainingGraph

tf1 = tf.compat.v1


@dataclass(frozen=True)
class StepResult:
    """After a step: the global step, where the job ends, the loss, and what was asked for."""

    step: int
    end_at: int
    loss: float
    shown: Mapping[str, float]
    summary: bytes | None


class Stepper:
    """Makes the steps of one session."""

    def __init__(self, session: tf1.Session, graph: TrainingGraph) -> None:
        self._session = session
        self._graph = graph
        self._runs: dict[tuple[bool, bool], object] = {}
        self._token = int(session.run(graph.rounds.replica.now)) if graph.rounds else 0

    def take(self, shown: bool = False, summary: bool = False) -> StepResult:
        """Make one step. Under sync it ends with the round, or later ones if we were slow."""
        summary = summary and self._graph.summary is not None
        feeds = (self._token,) if self._graph.rounds else ()
        (position, end_at), loss, values, text = self._run(shown, summary)(*feeds)
        step = int(position)
        if self._graph.rounds:
            step, end_at = self._next_token(step, end_at)
        names = self._graph.step.shown if shown else ()
        figures = {name: float(value) for name, value in zip(names, values)}
        return StepResult(step, int(end_at), float(loss), figures, text[0] if summary else None)

    def _run(self, shown: bool, summary: bool) -> object:
        """A prepared run: the session looks at fetches and feeds once."""
        if (shown, summary) not in self._runs:
            graph = self._graph
            fetches = [
                graph.step.position,
                graph.step.loss,
                list(graph.step.shown.values()) if shown else [],
                [graph.summary] if summary else [],
            ]
            feeds = [graph.rounds.replica.token] if graph.rounds else []
            self._runs[shown, summary] = self._session.make_callable(fetches, feeds)
        return self._runs[shown, summary]

    def _next_token(self, token: int, end_at: int) -> tuple[int, int]:
        """(global step, end_at) by the next token; tokens as old as ours are an earlier chief's."""
        while token <= self._token:
            token = int(self._session.run(self._graph.rounds.replica.next_token))
        if token == STOP:
            step, end_at = self._session.run(self._graph.now)
            return int(step), int(end_at)
        self._token = token
        return token & ((1 << STEP_BITS) - 1), int(end_at)
