"""What a program in graph mode gives, what it gets back, and `run` between the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.events import Progress
from trainer.task import Task
from trainer.training.graph_mode.options import GraphOptions

STEPS, THRESHOLD, NOTHING = "steps", "loss-threshold", "nothing"
"""Why a training ended: GraphResult.reached."""


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
    on_graph: Callable[[Any], None] | None = None
    """Only on the chief, with what `build` made: further summaries (tf.compat.v1.summary)."""


@dataclass(frozen=True)
class GraphResult:
    """How it went, as seen by this replica; figures of all replicas together where they say so."""

    step: int
    """The global step at the end."""
    reached: str
    """STEPS, THRESHOLD, or NOTHING where there was nothing left to do."""
    is_chief: bool
    loss: float | None
    """Mean of this replica's last 20 losses, None where it made no step."""
    shown: Mapping[str, float]
    """The last values of ModelLoss.shown."""
    checkpoint: Path | None
    """Prefix of the last checkpoint; None on all but the chief."""
    seconds: float
    """From this replica's first finished step to its last."""
    updates_per_second: float | None
    """Global steps in that time; None where there was one step or none."""
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


def run(task: Task, job: GraphJob, options: GraphOptions, progress: Progress | None) -> GraphResult:
    """Train to the end, from the newest checkpoint in `<output>/checkpoints` where there is one.

    A task alone trains in this process. With several replicas (chief and workers) and ps, each
    replica runs this function: the leader initialises or restores, saves and writes summaries, the
    others wait for it. Call it once per process, before anything else has used a GPU.

    Files, of the leader alone: `checkpoints/model.ckpt-<global step>` (variables by their own
    names), `tensorboard/train`. `touch <output>/save-now`, or SIGUSR1, saves at once and for good,
    as `checkpoints/manual.ckpt-<step>`. On SIGTERM the leader saves, and the process ends with 143.

    Writes `step` events about once a second and at the first step. The leader's figures
    (GraphResult.metrics) are for the program to write, with its own.

    Raises:
        ContractError: several replicas without a ps, or tasks that cannot run this.
        PeerLost: a ps or the chief was lost and did not come back in time.
        Diverged: a loss is no number; the last good checkpoint is kept.
        CheckpointError: the checkpoints there are damaged, or belong to another model.
    """
    from trainer.training.graph_mode.run import train

    return train(task, job, options, progress)
