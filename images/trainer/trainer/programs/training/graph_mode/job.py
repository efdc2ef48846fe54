"""What a program in graph mode gives to run(), and what it gets back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class ModelLoss:
    """One clone's part of the graph."""

    total: tf.Tensor
    """Scalar float: the mean loss of the clone's batch, with what else is minimised with it."""
    shown: Mapping[str, tf.Tensor] = field(default_factory=dict)
    """Scalars to print, to write to TensorBoard and to find in GraphResult.shown, by name."""
    updates: Sequence[tf.Operation] = ()
    """Run with every step, such as BatchNorm's averages; only those of the first clone are."""


@dataclass(frozen=True)
class GraphJob:
    """A model to train. Every function runs once per replica (`loss` once per clone), while the
    graph is built, and must build the same on every replica: variables are found by their names.

    Use tf_keras layers or compat.v1 variables, and TensorFlow ops. Random seeds are the job's own
    business; nothing here sets one.
    """

    inputs: Callable[[int, int], tf.data.Dataset]
    """(replica, replicas) to an endless dataset; an element is the batch of ONE clone."""
    build: Callable[[], Any]
    """Makes the variables, once, outside of every clone: a Keras model, a dict of variables."""
    loss: Callable[[Any, Any], ModelLoss]
    """(what `build` made, one element of the dataset) to ModelLoss; makes no variables."""
    optimizer: Callable[[tf.Tensor], tf.compat.v1.train.Optimizer]
    """From the global step, an int64 scalar, for schedules."""
    examples_per_batch: int
    """Examples in one element of the dataset."""
    milestone_steps: int = 0
    """Every so many global steps the chief also leaves `checkpoints/ckpt-<number>`, numbered from
    1, for evaluators: these stay. 0: none."""
    startup_delay_steps: int = 0
    """Global step at which all replicas but the leader begin, the job's last at most."""
    on_milestone: Callable[[], None] | None = None
    """Only on the chief, after each of those."""
    on_graph: Callable[[Any], None] | None = None
    """Only on the chief, with what `build` made: further summaries (tf.compat.v1.summary)."""


@dataclass(frozen=True)
class GraphResult:
    """How it went, as seen by this replica; figures of all replicas together if they say so."""

    step: int
    """The global step at the end."""
    reached: str
    """One of training.stop_reasons."""
    is_chief: bool
    loss: float | None
    """Mean of this replica's last 20 losses, None if it made no step."""
    shown: Mapping[str, float]
    """The last values of ModelLoss.shown."""
    checkpoint: Path | None
    """Prefix of the last checkpoint; None on all but the chief."""
    seconds: float
    """From this replica's first finished step to its last."""
    updates_per_second: float | None
    """Global steps in that time; None if there was one step or none."""
    images_per_second: float | None
    """Examples of all replicas in that time."""
    steps_of: Mapping[str, int]
    """Task name to the steps it has made (batches of all its clones), earlier runs included."""
    staleness_mean: float
    """Updates by others between a replica's pull and its push, mean over all steps."""
    staleness_max: int

    def metrics(self) -> dict[str, float | int]:
        """Flat, for a `metrics` event."""
        figures = {
            "updates": self.step,
            "steps_per_second": self.updates_per_second,
            "images_per_second": self.images_per_second,
            "staleness_mean": round(self.staleness_mean, 3),
            "staleness_max": self.staleness_max,
            "loss": self.loss,
        }
        figures |= {f"steps_of_{task}": steps for task, steps in self.steps_of.items()}
        return {name: value for name, value in figures.items() if value is not None}
