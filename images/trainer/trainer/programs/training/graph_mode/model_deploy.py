"""Clones of a model in one replica: creates them, and combines their losses and gradients.

    clones = create_clones(config, model_fn)       one copy per device, variables shared
    loss, gradients = optimize_clones(clones, …)   mean over the clones, regularisation once
    model = deploy(config, model_fn, optimizer=…)  all of it, with update and summaries

A model function adds its losses by tf.compat.v1.losses.add_loss (the LOSSES collection). It creates
variables by compat.v1.get_variable, or uses existing ones, so that their names have no clone's
scope, and the checkpoint of n clones equals that of one. Placement puts variables on the devices of
the deployment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.programs.training.graph_mode.replica import DeploymentConfig
from trainer.programs.training.packs import GradientsAndVariables

VARIABLE_OPS = ("VarHandleOp", "Variable", "VariableV2", "AutoReloadVariable")


class Placement:
    """Spreads the variables of a graph over the ps: each variable goes to the ps with fewest bytes.

    The choice depends only on the order of creation, so every replica makes the same choice.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        self._config = config
        self._bytes = [0] * max(1, config.num_ps_tasks if config.distributed else 1)

    def around(self, device: str) -> Callable[[tf.Operation], str]:
        """Returns a function for tf.device: variables on the ps (in a single process: on their
        device), other ops on `device`. A device that an op or an inner tf.device sets has
        priority."""

        def choose(op: tf.Operation) -> str:
            requested = tf.compat.v1.DeviceSpec.from_string(op.device or "")
            wanted = device
            if op.type in VARIABLE_OPS:
                wanted = self._config.variables_device()
                if self._config.distributed and requested.job is None:
                    wanted += f"/task:{self._lightest(op)}"
            return (
                tf.compat.v1.DeviceSpec.from_string(wanted).make_merged_spec(requested).to_string()
            )

        return choose

    def _lightest(self, op: tf.Operation) -> int:
        size = tf.TensorShape(op.get_attr("shape")).num_elements() or 1
        task = self._bytes.index(min(self._bytes))
        self._bytes[task] += size * tf.as_dtype(op.get_attr("dtype")).size
        return task


tf1 = tf.compat.v1


@dataclass(frozen=True)
class Clone:
    """The result of the model function, the name scope of its ops (with '/', or ''), and its
    device."""

    outputs: Any
    scope: str
    device: str


@dataclass(frozen=True)
class DeployedModel:
    """`total_loss`: mean of the clones' losses plus regularisation. None without an optimizer."""

    train_op: tf.Tensor | None
    summary_op: tf.Tensor | None
    total_loss: tf.Tensor | None
    clones: Sequence[Clone]


def create_clones(
    config: DeploymentConfig,
    model_fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    placement: Placement | None = None,
) -> list[Clone]:
    """Call `model_fn(*args, **kwargs)` once per clone, on its device, with shared variables."""
    placement = placement or Placement(config)
    clones = []
    for index in range(config.num_clones):
        device = config.clone_device(index)
        with (
            tf1.name_scope(config.clone_scope(index) or None) as scope,
            tf1.device(placement.around(device)),
            tf1.variable_scope(
                tf1.get_variable_scope(),
                reuse=True if index else None,
                caching_device=config.caching_device(),
            ),
        ):
            clones.append(Clone(model_fn(*args, **(kwargs or {})), scope or "", device))
    return clones


def optimize_clones(
    clones: Sequence[Clone],
    compute_gradients: Callable[[tf.Tensor], GradientsAndVariables],
    regularization_losses: Sequence[tf.Tensor] | None = None,
) -> tuple[tf.Tensor | None, GradientsAndVariables]:
    """Returns (total loss, its gradients), summed over the clones, each of which has 1/n of its
    loss.

    Args:
        compute_gradients: returns the gradient of a clone's loss for each variable, such as an
            optimizer's; it is called on the clone's device.
        regularization_losses: by default those of the graph's collection; they count once.
    """
    if regularization_losses is None:
        regularization_losses = tf1.get_collection(tf1.GraphKeys.REGULARIZATION_LOSSES)
    losses, gradients = [], []
    for clone in clones:
        loss = gather_clone_loss(clone, len(clones), regularization_losses)
        if loss is None:
            continue
        with tf1.device(clone.device):
            gradients.append(compute_gradients(loss))
        losses.append(loss)
        regularization_losses = ()
    if not losses:
        return None, []
    return tf.add_n(losses, name="loss_of_all_clones"), sum_gradients(gradients)


def gather_clone_loss(
    clone: Clone, num_clones: int, regularization_losses: Sequence[tf.Tensor] = ()
) -> tf.Tensor | None:
    """Returns the clone's losses divided by `num_clones`, plus the regularisation; None if it has
    no loss."""
    losses = tf1.get_collection(tf1.GraphKeys.LOSSES, clone.scope or None)
    parts = []
    with tf1.device(clone.device):
        if losses:
            parts.append(tf.divide(tf.add_n(losses), num_clones, name="clone_loss"))
        if regularization_losses:
            parts.append(tf.add_n(list(regularization_losses), name="regularization_loss"))
        return tf.add_n(parts) if parts else None


def sum_gradients(of_clones: Iterable[GradientsAndVariables]) -> GradientsAndVariables:
    """Returns the sum over the clones for each variable; variables that no loss depends on are
    omitted."""
    summed = []
    for pairs in zip(*of_clones):
        total = added(gradient for gradient, _ in pairs)
        if total is not None:
            summed.append((total, pairs[0][1]))
    return summed


def added(gradients: Iterable[tf.Tensor | tf.IndexedSlices | None]) -> tf.Tensor | None:
    """Returns the sum of those that are not None, as a dense tensor; None if all are."""
    given = [dense(gradient) for gradient in gradients if gradient is not None]
    return tf.add_n(given) if len(given) > 1 else next(iter(given), None)


def average_gradients(of_clones: Sequence[GradientsAndVariables]) -> GradientsAndVariables:
    """Returns the mean over the clones for each variable, for losses that were not divided by their
    number."""
    return [(total / len(of_clones), variable) for total, variable in sum_gradients(of_clones)]


def clipped(gradients: Sequence[tf.Tensor], norm: float) -> Sequence[tf.Tensor]:
    """Return the gradients, scaled down so that their global norm is at most `norm`; 0: as they
    are."""
    return tf.clip_by_global_norm(gradients, norm)[0] if norm else gradients


def dense(gradient: tf.Tensor | tf.IndexedSlices) -> tf.Tensor:
    """Returns the gradient as a dense tensor."""
    return tf.convert_to_tensor(gradient)


def gradient_summaries(gradients: GradientsAndVariables) -> list[tf.Tensor]:
    """Returns a histogram of each variable's gradient, and one summary with the norms of all."""
    if not gradients:
        return []
    summaries = [
        tf1.summary.histogram(f"gradients/{v.op.name}", gradient) for gradient, v in gradients
    ]
    halved_squares = tf.stack([tf.nn.l2_loss(tf.cast(g, tf.float32)) for g, _ in gradients])
    norms = tf.raw_ops.ScalarSummary(
        tags=[f"gradient_norm/{v.op.name}" for _, v in gradients],
        values=tf.sqrt(2.0 * halved_squares),
    )
    tf1.add_to_collection(tf1.GraphKeys.SUMMARIES, norms)
    return [*summaries, norms]


def deploy(
    config: DeploymentConfig,
    model_fn: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    optimizer: tf1.train.Optimizer | None = None,
    summarize_gradients: bool = False,
) -> DeployedModel:
    """Create the whole model of this replica. The optimizer may wrap another one.

    `train_op` applies the gradients, runs the first clone's UPDATE_OPS, counts the global step, and
    returns the total loss.
    """
    placement = Placement(config)
    clones = create_clones(config, model_fn, args, kwargs, placement)
    first = clones[0].scope or None
    summaries = list(tf1.get_collection(tf1.GraphKeys.SUMMARIES, first))
    train_op = total = None
    with tf1.device(placement.around(config.optimizer_device())):
        if optimizer is not None:
            total, gradients = optimize_clones(clones, optimizer.compute_gradients)
        if total is not None:
            if summarize_gradients:
                summaries += gradient_summaries(gradients)
            summaries.append(tf1.summary.scalar("total_loss", total))
            step = tf1.train.get_or_create_global_step()
            updates = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS, first)
            applied = optimizer.apply_gradients(gradients, global_step=step)
            with tf.control_dependencies([applied, *updates]):
                train_op = tf.identity(total, name="train_op")
        summary_op = tf1.summary.merge(summaries) if summaries else None
    return DeployedModel(train_op, summary_op, total, clones)
