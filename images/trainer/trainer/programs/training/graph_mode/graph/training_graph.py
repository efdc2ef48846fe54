"""The graph of one replica, as a value: everything that a session runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import tensorflow as tf

from trainer.programs.training.graph_mode.counters import SharedCounters
from trainer.programs.training.graph_mode.graph.model_deploy import GradientsAndVariables
from trainer.programs.training.graph_mode.graph.sync_replicas import Rounds
from trainer.programs.training.graph_mode.saving.saver import Checkpoints


@dataclass(frozen=True)
class Step:
    """One training step of this replica."""

    loss: tf.Tensor
    """Float scalar: mean over the clones, with regularisation."""
    gradients: GradientsAndVariables
    shown: Mapping[str, tf.Tensor]
    """ModelLoss.shown, each the mean over the clones; float32 scalars."""
    position: tf.Tensor
    """Makes the step: [global step (under sync the token), end_at], int64."""
    rounds: Rounds | None
    """Under sync with several replicas."""


@dataclass(frozen=True)
class Controls:
    """How a replica tells the others about the end."""

    new_end: tf.Tensor
    """To feed: the global step at which the job shall end; `end` sets it."""
    end: tf.Operation
    mark: tf.Tensor
    """To feed: this replica's entry in SharedCounters.finished; `finish` sets it."""
    finish: tf.Operation


@dataclass(frozen=True)
class TrainingGraph:
    """Built by build.build()."""

    graph: tf.Graph
    counters: SharedCounters
    step: Step
    summary: tf.Tensor | None
    """Serialized summaries of a step; None if this replica writes none."""
    checkpoints: Checkpoints
    initialize: tf.Operation
    """The model, the optimizer and the counts: what a checkpoint holds."""
    initialize_run: tf.Operation
    """SharedCounters.of_this_run; the others begin when it and Rounds.base have values."""
    initialize_local: tf.Operation
    """This replica's own: input, tables, local variables."""
    uninitialized: tf.Tensor
    """Names of the shared variables without a value, [n] string."""
    now: tf.Tensor
    """[global step, end_at], int64, read only."""
    controls: Controls

    @property
    def rounds(self) -> Rounds | None:
        return self.step.rounds
