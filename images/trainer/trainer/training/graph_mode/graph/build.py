"""The graph of one replica: the program's model in clones, its update, and what surrounds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.training.graph_mode.graph import model_deploy
from trainer.training.graph_mode.graph.counters import Ledger, make_ledger
from trainer.training.graph_mode.graph.placement import Placement
from trainer.training.graph_mode.graph.updates import Rounds, apply_at_once, apply_in_rounds
from trainer.training.graph_mode.job import GraphJob, ModelLoss
from trainer.training.graph_mode.options import GraphOptions
from trainer.training.graph_mode.replica import Replica
from trainer.training.graph_mode.saving.saver import Checkpoints, directory

tf1 = tf.compat.v1
NO_NUMBER = "the loss is no number"
"""Marks the error that ends a diverged training, in TensorFlow's own message."""


@dataclass(frozen=True)
class TrainingGraph:
    """Everything that a session runs."""

    graph: tf.Graph
    ledger: Ledger
    loss: tf.Tensor
    """Scalar: mean over the clones, with regularisation."""
    shown: Mapping[str, tf.Tensor]
    position: tf.Tensor
    """Makes one step: [global step or stamp, end_at], int64."""
    rounds: Rounds | None
    """Under sync with several replicas."""
    summary: tf.Tensor | None
    checkpoints: Checkpoints
    initialize: tf.Operation
    """The model, the optimizer and the counts: what a checkpoint holds."""
    initialize_run: tf.Operation
    """Ledger.of_this_run; when it is there, and Rounds.base, the others begin."""
    initialize_local: tf.Operation
    """This replica's own: input, tables, local variables."""
    uninitialized: tf.Tensor
    """Names of shared variables that have no value yet, [n] string."""
    standing: tf.Tensor
    """[global step, end_at], read only."""
    end_at: tf.Tensor
    """To feed: a new end; `end` sets it."""
    end: tf.Operation
    mark: tf.Tensor
    """To feed: this replica's entry in Ledger.finished; `finish` sets it."""
    finish: tf.Operation


def build(job: GraphJob, options: GraphOptions, replica: Replica, output: Path) -> TrainingGraph:
    """Build it; variables by name and place are the same on every replica."""
    config = replica.deployment
    placement = Placement(config)
    home = f"{config.ps_device}/task:0/device:CPU:0" if config.distributed else "/device:CPU:0"
    graph = tf.Graph()
    with graph.as_default():
        ledger = make_ledger(home, replica.count, options.steps)
        with tf1.device(config.inputs_device()):
            inputs = tf1.data.make_initializable_iterator(job.inputs(replica.number, replica.count))
        with (
            tf1.device(placement.around(config.inputs_device())),
            tf.variable_creator_scope(cached_on(config.caching_device())),
        ):
            model = job.build()
        clones = model_deploy.create_clones(
            config,
            lambda: one_clone(job, model, inputs, config.inputs_device()),
            placement=placement,
        )
        with tf1.device(placement.around(config.optimizer_device())):
            optimizer = job.optimizer(ledger.global_step.read_value())
            loss, gradients = model_deploy.optimize_clones(clones, optimizer)
            gradients = only_if_finite(loss, gradients)
            shown = mean_over([clone.outputs for clone in clones])
            updates = list(clones[0].outputs.updates)
            rounds = None
            if replica.gradients_per_round:
                rounds = apply_in_rounds(
                    ledger, replica.number, replica.gradients_per_round, optimizer, gradients,
                    updates if replica.is_chief else [],
                )  # fmt: skip
                position = rounds.position
            else:
                position = apply_at_once(ledger, replica.number, optimizer, gradients, updates)
            made = tf1.global_variables()
        with tf1.device(config.inputs_device()):
            local = [
                inputs.initializer,
                tf1.tables_initializer(),
                tf1.local_variables_initializer(),
            ]
            of_run = [*ledger.of_this_run, *([rounds.base] if rounds else [])]
            end_at, end, mark, finish = ends(ledger, replica.number)
            missing = tf1.report_uninitialized_variables(made)
            missing.mark_used()
            summary = None
            if replica.is_chief and options.summary_steps:
                summary = summaries(job, model, loss, shown, gradients)
            return TrainingGraph(
                graph=graph,
                ledger=ledger,
                loss=loss,
                shown=shown,
                position=position,
                rounds=rounds,
                summary=summary,
                checkpoints=Checkpoints(
                    directory(output), options.keep, ledger, of_run, config.inputs_device()
                ),
                initialize=initializers(v for v in made if not any(v is o for o in of_run)),
                initialize_run=initializers(ledger.of_this_run),
                initialize_local=tf.group(*local),
                uninitialized=missing,
                standing=tf.stack([ledger.global_step.read_value(), ledger.end_at.read_value()]),
                end_at=end_at,
                end=end,
                mark=mark,
                finish=finish,
            )


def one_clone(job: GraphJob, model: Any, inputs: Any, inputs_device: str) -> ModelLoss:
    with tf1.device(inputs_device):
        batch = inputs.get_next()
    found = job.loss(model, batch)
    tf1.losses.add_loss(found.total)
    return found


def cached_on(device: str | None) -> Callable[..., tf.Variable]:
    """A variable creator: a step pulls each variable once, however many clones use it."""

    def create(make: Callable[..., tf.Variable], **keys: Any) -> tf.Variable:
        if device and keys.get("caching_device") is None:
            keys["caching_device"] = device
        return make(**keys)

    return create


def only_if_finite(
    loss: tf.Tensor, gradients: model_deploy.GradientsAndVariables
) -> model_deploy.GradientsAndVariables:
    """The gradients, not to be had where the loss is no number: nothing reaches a variable."""
    with tf.control_dependencies([tf.debugging.check_numerics(loss, NO_NUMBER)]):
        return [(tf.identity(gradient), v) for gradient, v in gradients]


def mean_over(clones: list[ModelLoss]) -> dict[str, tf.Tensor]:
    return {
        name: tf.add_n([tf.cast(clone.shown[name], tf.float32) for clone in clones]) / len(clones)
        for name in clones[0].shown
    }


def ends(ledger: Ledger, replica: int) -> tuple[tf.Tensor, tf.Operation, tf.Tensor, tf.Operation]:
    end_at, mark = tf1.placeholder(tf.int64, ()), tf1.placeholder(tf.int64, ())
    with tf1.device(ledger.device):
        finish = tf.raw_ops.ResourceScatterUpdate(
            resource=ledger.finished.handle, indices=replica, updates=mark
        )
        return end_at, ledger.end_at.assign(end_at).op, mark, finish


def summaries(
    job: GraphJob,
    model: Any,
    loss: tf.Tensor,
    shown: Mapping[str, tf.Tensor],
    gradients: model_deploy.GradientsAndVariables,
) -> tf.Tensor:
    tf1.summary.scalar("loss", loss)
    for name, value in shown.items():
        if name != "loss":
            tf1.summary.scalar(name, value)
    model_deploy.gradient_summaries(gradients)
    if job.on_graph:
        job.on_graph(model)
    return tf1.summary.merge_all()


def initializers(variables: Any) -> tf.Operation:
    return tf.group(*[v.initializer for v in variables])
