"""Builds the TensorFlow graph of one replica: the program's model in clones, and its update.

The graph is built before any session. Asynchronous updates apply each gradient at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.programs.training import packs
from trainer.programs.training.graph_mode import model_deploy, packed_steps
from trainer.programs.training.graph_mode.checkpoint_saver import Checkpoints
from trainer.programs.training.graph_mode.counters import SharedCounters, counted, make_counters
from trainer.programs.training.graph_mode.job import GraphJob, ModelLoss
from trainer.programs.training.graph_mode.model_deploy import Clone, Placement, clipped
from trainer.programs.training.graph_mode.options import GraphOptions
from trainer.programs.training.graph_mode.replica import DeploymentConfig, Replica
from trainer.programs.training.graph_mode.sync_replicas import Rounds, apply_in_rounds
from trainer.programs.training.packs import GradientsAndVariables
from trainer.programs.training.program import checkpoint_directory


@dataclass(frozen=True)
class Step:
    """One training step of this replica."""

    loss: tf.Tensor
    """Float scalar: the mean over the clones, with regularization."""
    gradients: GradientsAndVariables
    shown: Mapping[str, tf.Tensor]
    """ModelLoss.shown, each the mean over the clones; float32 scalars."""
    position: tf.Tensor
    """Running it makes the step. Its value is [global step (under sync the token), end_at],
    int64."""
    rounds: Rounds | None
    """Set under sync with several replicas."""


@dataclass(frozen=True)
class Controls:
    """The ops by which a replica announces the end to the others."""

    new_end: tf.Tensor
    """A placeholder for the global step at which the job ends; running `end` sets it."""
    end: tf.Operation
    mark: tf.Tensor
    """A placeholder for this replica's entry in SharedCounters.finished; running `finish` sets
    it."""
    finish: tf.Operation


@dataclass(frozen=True)
class TrainingGraph:
    """The graph that `build` made."""

    graph: tf.Graph
    counters: SharedCounters
    step: Step
    summary: tf.Tensor | None
    """Serialized summaries of a step; None if this replica writes no summaries."""
    checkpoints: Checkpoints | None
    """None if another replica saves."""
    initialize: tf.Operation
    """Initializes the variables that are in a checkpoint: model, optimizer and counters."""
    initialize_run: tf.Operation
    """Initializes SharedCounters.of_this_run; the other replicas begin when it and Rounds.base have
    values."""
    initialize_local: tf.Operation
    """Initializes what only this replica uses: input, tables, local variables."""
    uninitialized: tf.Tensor | None
    """Names of the shared variables that have no value, [n] string; None on the chief, which
    initializes them."""
    now: tf.Tensor
    """[global step, end_at], int64; reading it changes nothing."""
    controls: Controls

    @property
    def rounds(self) -> Rounds | None:
        return self.step.rounds


tf1 = tf.compat.v1


def apply_at_once(
    counters: SharedCounters,
    replica: int,
    optimizer: tf1.train.Optimizer,
    gradients: GradientsAndVariables,
    updates: Sequence[tf.Operation],
) -> tf.Tensor:
    """Returns the op of one step of replica number `replica`; its value is [global step, end_at],
    int64.

    It applies the gradients, runs `updates`, and counts the step. A single replica uses it, too.
    """
    with tf1.device(counters.device):
        before = counters.global_step.read_value()
    with packs.read_on_ps([v for _, v in gradients]):
        applied = optimizer.apply_gradients(gradients)
    with tf1.device(counters.device), tf.control_dependencies([applied, before, *updates]):
        after = counters.global_step.assign_add(1, read_value=True)
    return counted(counters, replica, before, after)


NOT_FINITE = "the loss is not finite"
"""A part of TensorFlow's message that identifies the error of a diverged training."""


def build(job: GraphJob, options: GraphOptions, replica: Replica, output: Path) -> TrainingGraph:
    """Return the graph; variables have the same names and devices on every replica that has them.

    It has only the ops that this replica needs: Python takes most of a start to make them.
    """
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
                )
                if replica.is_chief
                else None,
                initialize=initializers(v for v in variables if not any(v is o for o in of_run)),
                initialize_run=initializers(counters.of_this_run),
                initialize_local=initialize_local(inputs),
                uninitialized=None if replica.is_chief else names_without_value(variables),
                now=tf.stack([counters.global_step.read_value(), counters.end_at.read_value()]),
                controls=make_controls(counters, replica.number),
            )


def counters_device(config: DeploymentConfig) -> str:
    """Returns the device of the shared counters: the first ps, or the CPU of a single process."""
    return f"{config.ps_device}/task:0/device:CPU:0" if config.distributed else "/device:CPU:0"


def make_inputs(job: GraphJob, replica: Replica) -> Any:
    """Returns the iterator over this replica's batches."""
    with tf1.device(replica.deployment.inputs_device()):
        return tf1.data.make_initializable_iterator(job.inputs(replica.number, replica.count))


def make_clones(
    job: GraphJob, config: DeploymentConfig, placement: Placement, inputs: Any
) -> tuple[Any, list[Clone]]:
    """Return (result of job.build, clones); each clone's outputs are a ModelLoss."""
    others = len(tf1.global_variables())
    with (
        tf1.device(placement.around(config.inputs_device())),
        tf.variable_creator_scope(cached_on(config.caching_device())),
    ):
        model = job.build()
    if config.distributed:
        packed_steps.read_in_packs(tf1.global_variables()[others:], config.inputs_device())
    return model, model_deploy.create_clones(
        config,
        lambda: one_clone(job, model, inputs, config.inputs_device()),
        placement=placement,
    )


def one_clone(job: GraphJob, model: Any, inputs: Any, inputs_device: str) -> ModelLoss:
    """Return the loss of the next batch, and add it to the graph's collection of losses."""
    with tf1.device(inputs_device):
        batch = inputs.get_next()
    loss = job.loss(model, batch)
    tf1.losses.add_loss(loss.total)
    return loss


def make_step(
    job: GraphJob, replica: Replica, counters: SharedCounters, clones: Sequence[Clone]
) -> Step:
    """Return the ops of a step of this replica; if the loss diverges, no variable changes."""
    optimizer = job.optimizer(counters.global_step.read_value())
    loss, gradients = model_deploy.optimize_clones(clones, packed_steps.gradients_of)
    gradients = only_if_finite(loss, gradients)
    shown = mean_over([clone.outputs for clone in clones])
    updates = clones[0].outputs.updates
    if replica.gradients_per_round:
        rounds = apply_in_rounds(counters, replica, optimizer, gradients, job.clip_norm, updates)
        return Step(loss, gradients, shown, rounds.replica.position, rounds)
    if replica.deployment.distributed:
        grouped = packs.packs_of([v for _, v in gradients])
        sent = clipped(packs.packed_gradients(gradients, grouped), job.clip_norm)
        applied = packs.unpacked_gradients(sent, grouped)
        updates = packed_steps.updates_in_packs(updates)
    else:
        values = clipped([gradient for gradient, _ in gradients], job.clip_norm)
        applied = [(value, v) for value, (_, v) in zip(values, gradients)]
    position = apply_at_once(counters, replica.number, optimizer, applied, updates)
    return Step(loss, gradients, shown, position, None)


def cached_on(device: str | None) -> Callable[..., tf.Variable]:
    """Return a variable creator with which the job's `build` reads each variable once. A step reads
    packs instead, except of variables that are not in the graph's collection of all."""

    def create(make: Callable[..., tf.Variable], **keys: Any) -> tf.Variable:
        if device and keys.get("caching_device") is None:
            keys["caching_device"] = device
        return make(**keys)

    return create


def only_if_finite(loss: tf.Tensor, gradients: GradientsAndVariables) -> GradientsAndVariables:
    """Returns the gradients; reading them raises NOT_FINITE if the loss is not finite."""
    with tf.control_dependencies([tf.debugging.check_numerics(loss, NOT_FINITE)]):
        return [(tf.identity(gradient), v) for gradient, v in gradients]


def mean_over(clones: Sequence[ModelLoss]) -> dict[str, tf.Tensor]:
    """Returns ModelLoss.shown by name, each the mean over the clones; float32 scalars."""
    return {
        name: tf.add_n([tf.cast(clone.shown[name], tf.float32) for clone in clones]) / len(clones)
        for name in clones[0].shown
    }


def make_controls(counters: SharedCounters, replica: int) -> Controls:
    """Returns the ops by which replica number `replica` sets the end and marks itself as
    finished."""
    new_end, mark = tf1.placeholder(tf.int64, ()), tf1.placeholder(tf.int64, ())
    with tf1.device(counters.device):
        finish = tf.raw_ops.ResourceScatterUpdate(
            resource=counters.finished.handle, indices=replica, updates=mark
        )
        return Controls(new_end, counters.end_at.assign(new_end).op, mark, finish)


def summaries(job: GraphJob, model: Any, step: Step) -> tf.Tensor:
    """Returns all summaries of a step in one serialized string."""
    shown: Mapping[str, tf.Tensor] = {"loss": step.loss} | {
        name: value for name, value in step.shown.items() if name != "loss"
    }
    for name, value in shown.items():
        # tf1.summary.scalar would use the name w_1 if there is a variable w.
        scalar = tf.raw_ops.ScalarSummary(tags=name, values=value)
        tf1.add_to_collection(tf1.GraphKeys.SUMMARIES, scalar)
    model_deploy.gradient_summaries(step.gradients)
    if job.on_graph:
        job.on_graph(model)
    return tf1.summary.merge_all()


def initialize_local(inputs: Any) -> tf.Operation:
    """Returns an op that initializes everything that only this replica uses."""
    return tf.group(inputs.initializer, tf1.tables_initializer(), tf1.local_variables_initializer())


def names_without_value(variables: Sequence[tf.Variable]) -> tf.Tensor:
    """Returns a tensor with the names of the variables without a value at the time it is run, [n]
    string."""
    missing = tf1.report_uninitialized_variables(variables)
    missing.mark_used()
    return missing


def initializers(variables: Iterable[tf.Variable]) -> tf.Operation:
    """Returns one op that initializes all variables."""
    return tf.group(*[v.initializer for v in variables])


def updates_of(model: tf.keras.Model, batch: tf.Tensor) -> list[tf.Operation]:
    """Returns the updates that `model` needs with every step, such as BatchNorm's averages.

    They are for ModelLoss.updates. Outside of a graph (eager, tf.function) there are none.
    """
    return list(model.get_updates_for([batch])) + list(model.get_updates_for(None))
