"""Makes the training steps of this replica and reports them: lines, progress events, TensorBoard.

A step returns everything that the replica needs after it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from trainer.agent.progress_file import Progress
from trainer.programs.training.board import graph_writer
from trainer.programs.training.graph_mode.options import GraphOptions
from trainer.programs.training.graph_mode.replica_graph import TrainingGraph
from trainer.programs.training.graph_mode.sync_replicas import STEP_BITS, STOP
from trainer.programs.training.result import per_second

tf1 = tf.compat.v1


@dataclass(frozen=True)
class StepResult:
    """The result of a step: global step, step at which the job ends, loss, fetched tensors."""

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
        """Make one step.

        Under sync it ends with its round, or with a later round if this replica is slow.
        """
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
        """Returns a prepared run of the session, which resolves fetches and feeds only once."""
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
        """Returns (global step, end_at) of the next token; older tokens of an earlier chief are
        skipped."""
        while token <= self._token:
            token = int(self._session.run(self._graph.rounds.replica.next_token))
        if token == STOP:
            step, end_at = self._session.run(self._graph.now)
            return int(step), int(end_at)
        self._token = token
        return token & ((1 << STEP_BITS) - 1), int(end_at)


LOSSES = 20
EVENT_S = 1.0


class Report:
    """Decides before each step what to fetch, and reports it after the step."""

    def __init__(
        self,
        options: GraphOptions,
        progress: Progress | None,
        logs: Path | None,
        images_per_step: int | None,
    ) -> None:
        self.shown: Mapping[str, float] = {}
        self.first: tuple[int, float] | None = None
        """(global step, monotonic seconds) after this replica's first step."""
        self.last: tuple[int, float] | None = None
        self._options = options
        self._progress = progress
        self._images_per_step = images_per_step
        self._losses: deque[float] = deque(maxlen=LOSSES)
        self._own_steps = 0
        self._step = 0
        self._said = (0, 0.0)
        self._event = (0, 0.0)
        self._summarized = 0
        self._writer = graph_writer(logs) if logs else None

    def show(self, graph: tf.Graph) -> None:
        """Write the graph for TensorBoard's tab Graphs."""
        if self._writer:
            self._writer.add_graph(graph)

    def begin(self, step: int, end_at: int) -> None:
        """Note that a session starts at this global step; training ends at `end_at`."""
        if self._progress and self._writer:
            self._progress.write("training", images_per_step=self._images_per_step, steps=end_at)
        self._step = step
        self._summarized = step
        self._said = self._event = (step, time.monotonic())

    @property
    def loss(self) -> float | None:
        """The mean of the last losses; None before the first step."""
        return sum(self._losses) / len(self._losses) if self._losses else None

    @property
    def wants_shown(self) -> bool:
        return self._step // self._options.log_steps > self._said[0] // self._options.log_steps

    @property
    def wants_summary(self) -> bool:
        every = self._options.summary_steps
        return bool(self._writer and every) and self._step - self._summarized >= every

    def below_threshold(self) -> bool:
        threshold = self._options.loss_threshold
        full = len(self._losses) == LOSSES
        return threshold is not None and full and self.loss <= threshold

    def record(self, result: StepResult) -> None:
        """Report one step."""
        now = time.monotonic()
        self._step = result.step
        self._own_steps += 1
        self._losses.append(result.loss)
        self.last = (result.step, now)
        if self.first is None:
            self.first = self.last
            self._event = self._said = (result.step, now)
            self._write(result, 0.0)
        elif now - self._event[1] >= EVENT_S:
            self._write(result, per_second(self._event, self.last))
            self._event = self.last
        if result.shown:
            self.shown = result.shown
            self._say(result)
        if result.summary:
            self._writer.add_summary(result.summary, result.step)
            self._summarized = result.step

    def close(self) -> None:
        if self._writer:
            self._writer.flush()

    def _write(self, result: StepResult, speed: float) -> None:
        if self._progress:
            self._progress.write(
                "step", step=result.step, steps_per_s=speed, loss=result.loss,
                own_steps=self._own_steps,
            )  # fmt: skip

    def _say(self, result: StepResult) -> None:
        figures = {"loss": result.loss} | dict(result.shown)
        speed = per_second(self._said, self.last)
        self._said = self.last
        values = "  ".join(f"{name} {value:.4f}" for name, value in figures.items())
        print(f"step {result.step}  {values}  {speed:.1f} steps/s", flush=True)
