"""Builds the graph of one replica: the program's model in clones, its update, what surrounds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.programs.training.checkpoints.directory import checkpoint_directory
from trainer.programs.training.graph_mode.counters import SharedCounters, make_counters
from trainer.programs.training.graph_mode.deployment import DeploymentConfig
from trainer.programs.training.graph_mode.graph import model_deploy
from trainer.programs.training.graph_mode.graph.async_updates import apply_at_once
from trainer.programs.training.graph_mode.graph.model_deploy import Clone, GradientsAndVariables
from trainer.programs.training.graph_mode.graph.placement import Placement
from trainer.programs.training.graph_mode.graph.sync_replicas import apply_in_rounds
from trainer.programs.training.graph_mode.graph.training_graph import Controls, Step, TrainingGraph
from trainer.programs.training.graph_mode.job import GraphJob, ModelLoss
from trainer.programs.training.graph_mode.options import GraphOptions
from trainer.programs.training.graph_mode.replica import Replica
from trainer.programs.training.graph_mode.saving.saver import Checkpoints

tf1 = tf.compat.v1
NOT_FINITE = "the loss is not finite"
"""Marks the error that ends a diverged training, in TensorFlow's own message."""


def build(job: GraphJob, options: GraphOptions, replica: Replica, output: Path) -> TrainingGraph:
    """The graph; variables have the same names and places on every replica."""
    config = replica.deployment
    placement = Placement(config)
    graph = tf.Graph()
    with graph.as_default():
        counters = make_counters(counters_device(config), replica.count, options.steps)
        inputs = make_inputs(job, replica)
        model, clones = make_clones(job, config, placement, inputs)
        with tf1.device(placement.around(config.optimizer_device())):
            step = make_step(job, replica, counters, clones)
            variables = tf1.global_variables()
        with tf1.device(config.inputs_device()):
            of_run = [*counters.of_this_run, *([step.rounds.base] if step.rounds else [])]
            summarized = replica.is_chief and options.summary_steps
            return TrainingGraph(
                graph=graph,
                counters=counters,
                step=step,
                summary=summaries(job, model, step) if summarized else None,
                checkpoints=Checkpoints(
                    checkpoint_directory(output),
                    options.keep,
                    counters,
                    of_run,
                    config.inputs_device(),
                ),
                initialize=initializers(v for v in variables if not any(v is o for o in of_run)),
                initialize_run=initializers(counters.of_this_run),
                initialize_local=initialize_local(inputs),
                uninitialized=names_without_value(variables),
                now=tf.stack([counters.global_step.read_value(), counters.end_at.read_value()]),
                controls=make_controls(counters, replica.number),
            )


def counters_device(config: DeploymentConfig) -> str:
    """Where the shared counters live: on the first ps, or in a single process on its CPU."""
    return f"{config.ps_device}/task:0/device:CPU:0" if config.distributed else "/device:CPU:0"


def make_inputs(job: GraphJob, replica: Replica) -> Any:
    """The iterator over this replica's batches."""
    with tf1.device(replica.deployment.inputs_device()):
        return tf1.data.make_initializable_iterator(job.inputs(replica.number, replica.count))


def make_clones(
    job: GraphJob, config: DeploymentConfig, placement: Placement, inputs: Any
) -> tuple[Any, list[Clone]]:
    """(what job.build made, the clones); each clone's outputs are a ModelLoss."""
    with (
        tf1.device(placement.around(config.inputs_device())),
        tf.variable_creator_scope(cached_on(config.caching_device())),
    ):
        model = job.build()
    return model, model_deploy.create_clones(
        config,
        lambda: one_clone(job, model, inputs, config.inputs_device()),
        placement=placement,
    )


def one_clone(job: GraphJob, model: Any, inputs: Any, inputs_device: str) -> ModelLoss:
    """The loss of the next batch, also added to the graph's collection of losses."""
    with tf1.device(inputs_device):
        batch = inputs.get_next()
    loss = job.loss(model, batch)
    tf1.losses.add_loss(loss.total)
    return loss


def make_step(
    job: GraphJob, replica: Replica, counters: SharedCounters, clones: Sequence[Clone]
) -> Step:
    """One step of this replica; on divergence nothing reaches a variable."""
    optimizer = job.optimizer(counters.global_step.read_value())
    loss, gradients = model_deploy.optimize_clones(clones, optimizer)
    gradients = only_if_finite(loss, gradients)
    shown = mean_over([clone.outputs for clone in clones])
    updates = list(clones[0].outputs.updates)
    if not replica.gradients_per_round:
        position = apply_at_once(counters, replica.number, optimizer, gradients, updates)
        return Step(loss, gradients, shown, position, None)
    rounds = apply_in_rounds(
        counters, replica.number, replica.gradients_per_round, optimizer, gradients,
        updates if replica.is_chief else [],
    )  # fmt: skip
    return Step(loss, gradients, shown, rounds.replica.position, rounds)


def cached_on(device: str | None) -> Callable[..., tf.Variable]:
    """A variable creator: a step pulls each variable once, however many clones use it."""

    def create(make: Callable[..., tf.Variable], **keys: Any) -> tf.Variable:
        if device and keys.get("caching_device") is None:
            keys["caching_device"] = device
        return make(**keys)

    return create


def only_if_finite(loss: tf.Tensor, gradients: GradientsAndVariables) -> GradientsAndVariables:
    """The gradients, which fail with NOT_FINITE instead of having a value if the loss is NaN."""
    with tf.control_dependencies([tf.debugging.check_numerics(loss, NOT_FINITE)]):
        return [(tf.identity(gradient), v) for gradient, v in gradients]


def mean_over(clones: Sequence[ModelLoss]) -> dict[str, tf.Tensor]:
    """ModelLoss.shown by name, each the mean over the clones; float32 scalars."""
    return {
        name: tf.add_n([tf.cast(clone.shown[name], tf.float32) for clone in clones]) / len(clones)
        for name in clones[0].shown
    }


def make_controls(counters: SharedCounters, replica: int) -> Controls:
    """The ops with which replica number `replica` moves the end and marks itself as finished."""
    new_end, mark = tf1.placeholder(tf.int64, ()), tf1.placeholder(tf.int64, ())
    with tf1.device(counters.device):
        finish = tf.raw_ops.ResourceScatterUpdate(
            resource=counters.finished.handle, indices=replica, updates=mark
        )
        return Controls(new_end, counters.end_at.assign(new_end).op, mark, finish)


def summaries(job: GraphJob, model: Any, step: Step) -> tf.Tensor:
    """All summaries of a step in one serialized string."""
    shown: Mapping[str, tf.Tensor] = {"loss": step.loss} | {
        name: value for name, value in step.shown.items() if name != "loss"
    }
    for name, value in shown.items():
        # tf1.summary.scalar would call it w_1 where there is a variable w.
        scalar = tf.raw_ops.ScalarSummary(tags=name, values=value)
        tf1.add_to_collection(tf1.GraphKeys.SUMMARIES, scalar)
    model_deploy.gradient_summaries(step.gradients)
    if job.on_graph:
        job.on_graph(model)
    return tf1.summary.merge_all()


def initialize_local(inputs: Any) -> tf.Operation:
    """Initialises what belongs to this replica alone."""
    return tf.group(inputs.initializer, tf1.tables_initializer(), tf1.local_variables_initializer())


def names_without_value(variables: Sequence[tf.Variable]) -> tf.Tensor:
    """Names of those without a value when it is run, [n] string."""
    missing = tf1.report_uninitialized_variables(variables)
    missing.mark_used()
    return missing


def initializers(variables: Iterable[tf.Variable]) -> tf.Operation:
    """One op that initialises all of them."""
    return tf.group(*[v.initializer for v in variables])
