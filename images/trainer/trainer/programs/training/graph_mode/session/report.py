"""What a replica says while it trains: lines, progress events, TensorBoard; and its loss's mean."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

from trainer.agent.progress_file import Progress
from trainer.programs.training.board import graph_writer
from trainer.programs.training.graph_mode.options import GraphOptions
from trainer.programs.training.graph_mode.session.step import StepResult
from trainer.programs.training.speed import per_second

LOSSES = 20
EVENT_S = 1.0


class Report:
    """Knows before each step what the step has to bring, and afterwards says it."""

    def __init__(self, options: GraphOptions, progress: Progress | None, logs: Path | None) -> None:
        self.shown: Mapping[str, float] = {}
        self.first: tuple[int, float] | None = None
        """(global step, monotonic seconds) after this replica's first step."""
        self.last: tuple[int, float] | None = None
        self._options = options
        self._progress = progress
        self._losses: deque[float] = deque(maxlen=LOSSES)
        self._own_steps = 0
        self._step = 0
        self._said = (0, 0.0)
        self._event = (0, 0.0)
        self._summarized = 0
        self._writer = graph_writer(logs) if logs else None

    def show(self, graph: tf.Graph) -> None:
        """The graph, for TensorBoard's tab of that name."""
        if self._writer:
            self._writer.add_graph(graph)

    def begin(self, step: int, end_at: int) -> None:
        """A session starts, or starts again, at this global step; training ends at `end_at`."""
        if self._progress and self._writer:
            self._progress.write("training", steps=end_at)
        self._step = step
        self._summarized = step
        self._said = self._event = (step, time.monotonic())

    @property
    def loss(self) -> float | None:
        """Mean of the last losses, None before the first."""
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
        """Say what there is to say of one step."""
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
