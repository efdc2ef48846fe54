"""The input of run() in graph mode (GraphJob), and its result (GraphResult)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class ModelLoss:
    """The results of one clone in the graph."""

    total: tf.Tensor
    """Float scalar: the clone's mean loss, including all other terms to minimize."""
    shown: Mapping[str, tf.Tensor] = field(default_factory=dict)
    """Scalars by name, which are printed, written to TensorBoard, and kept in GraphResult.shown."""
    updates: Sequence[tf.Operation] = ()
    """Ops to run with every step, such as BatchNorm's averages; only the first clone's are run.
    With ps, each assignment is replaced by a new one: if another op depends on the old one, both
    run."""


@dataclass(frozen=True)
class GraphJob:
    """A model to train. Every function runs once per replica (`loss` once per clone), while the
    graph is built, and must build the same on every replica: variables are found by their names.

    Use tf_keras layers or compat.v1 resource variables of known shapes, and TensorFlow ops. The job
    sets random seeds itself, if it needs any.
    """

    inputs: Callable[[int, int], tf.data.Dataset]
    """Returns the endless dataset of (replica, replicas); an element is the batch of one clone."""
    build: Callable[[], Any]
    """Creates the variables once, outside of the clones, such as a Keras model."""
    loss: Callable[[Any, Any], ModelLoss]
    """Returns the ModelLoss of (result of `build`, dataset element); creates no variables."""
    optimizer: Callable[[tf.Tensor], tf.compat.v1.train.Optimizer]
    """Returns the optimizer, which applies the gradients; its argument is the global step (int64
    scalar), for schedules."""
    examples_per_batch: int
    """Examples in one element of the dataset."""
    clip_norm: float = 0.0
    """Largest global norm of an update's gradients (under sync, of their mean); 0: no limit."""
    examples: str = "images"
    """What the examples are; `images_per_step` is reported only of images."""
    milestone_steps: int = 0
    """Number of global steps between checkpoints for evaluators; 0: none.

    The chief writes them as `checkpoints/ckpt-<number>`, numbered from 1, and keeps them.
    """
    startup_delay_steps: int = 0
    """Global step at which all replicas but the leader begin, at most the job's last step."""
    on_milestone: Callable[[], None] | None = None
    """Called only on the chief, after each of these checkpoints."""
    on_graph: Callable[[Any], None] | None = None
    """Called on the chief with the result of `build`: adds tf.compat.v1 summaries."""


@dataclass(frozen=True)
class GraphResult:
    """The result of the training in this replica, or in all replicas if a field says so."""

    step: int
    """The last global step."""
    reached: str
    """STEPS, THRESHOLD or NOTHING of training.program."""
    is_chief: bool
    loss: float | None
    """Mean of this replica's last 20 losses; None if it made no step."""
    shown: Mapping[str, float]
    """The last values of ModelLoss.shown."""
    checkpoint: Path | None
    """Prefix of the last checkpoint; None on all but the chief."""
    seconds: float
    """Seconds from the end of this replica's first step to the end of its last step."""
    updates_per_second: float | None
    """Global steps per second in that time; None if there was at most one step."""
    examples: str
    """What the examples are, such as `images`."""
    examples_per_second: float | None
    """Those of all replicas in that time."""
    steps_of: Mapping[str, int]
    """The steps of each task by name (batches of all its clones), including earlier runs."""
    staleness_mean: float
    """Mean number of updates by other replicas between a replica's pull and its push."""
    staleness_max: int

    def metrics(self) -> dict[str, float | int]:
        """Returns the values for a `metrics` event."""
        figures = {
            "updates": self.step,
            "steps_per_second": self.updates_per_second,
            f"{self.examples}_per_second": self.examples_per_second,
            "staleness_mean": round(self.staleness_mean, 3),
            "staleness_max": self.staleness_max,
            "loss": self.loss,
        }
        figures |= {f"steps_of_{task}": steps for task, steps in self.steps_of.items()}
        return {name: value for name, value in figures.items() if value is not None}
