"""tf_keras's optimizers with the same variables and the same updates, each by one op; and how many
updates one has made.

tf_keras takes five to ten ops for the update of a variable. Each passes over all of its weights in
memory, and a chief takes milliseconds to trace it. Sparse gradients and rarer options are left to
tf_keras.

With parameter servers, a step sends gradients in packs, and each ps gets what these ops have in
common once, where tf_keras reads the counter and the learning rate anew for each variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from trainer.programs.training import packs
from trainer.programs.training.packs import GradientsAndVariables

keras = tf.keras
Gradient = tf.Tensor | tf.IndexedSlices


def updates(optimizer: keras.optimizers.Optimizer) -> int:
    """Returns how many updates `optimizer` has made: a program's steps. Any thread may call it.

    The counter is read on its own device. A read by another device is a function on both, and
    TensorFlow may crash, or send a damaged request, if one thread runs such a function while
    another one creates one (`EagerClusterFunctionLibraryRuntime::Run` of 2.21 keeps a pointer into
    a vector that grows).
    """
    counter = optimizer.iterations
    with tf.device(counter.device):
        return int(counter.read_value().numpy())


@dataclass(frozen=True)
class StepScalars:
    """One step's update of all variables: its number, from 1, and its learning rate.

    Not a tuple or a dict: an optimizer would save those in checkpoints.
    """

    number: tf.Tensor
    rate: tf.Tensor
    arguments: dict[tuple[str, tf.DType], dict[str, tf.Tensor]] = field(default_factory=dict)
    """What the ops on one device, for variables of one type, have in common."""


class PackingOptimizer(keras.optimizers.Optimizer):
    """An optimizer that sends packs to parameter servers; its subclasses update by one op."""

    _scalars: StepScalars | None = None

    def op_arguments(
        self, number: tf.Tensor, rate: tf.Tensor, kind: tf.DType
    ) -> dict[str, tf.Tensor]:
        """Returns the op's arguments that are the same for all variables of type `kind`."""
        raise NotImplementedError

    def arguments_for(self, variable: tf.Variable) -> dict[str, tf.Tensor]:
        """Returns `op_arguments` for `variable`: on a ps, the same tensors for all variables."""
        kind, scalars = variable.dtype, self._scalars
        if scalars is None:
            return self.op_arguments(self.iterations + 1, self.learning_rate, kind)
        key = variable.device, kind
        if key not in scalars.arguments:
            scalars.arguments[key] = self.op_arguments(scalars.number, scalars.rate, kind)
        return scalars.arguments[key]

    def _distributed_apply_gradients_fn(
        self,
        distribution: tf.distribute.Strategy,
        grads_and_vars: GradientsAndVariables,
        **keys: Any,
    ) -> tf.Tensor:
        pairs = list(grads_and_vars)
        if not self._is_for_servers(distribution):
            return super()._distributed_apply_gradients_fn(distribution, pairs, **keys)
        with tf.device(self.iterations.device):
            number = self.iterations.read_value() + 1
        with tf.device(self.learning_rate.device):
            rate = tf.identity(self.learning_rate)
        sent = [(value, v) for value, v in pairs if is_elsewhere(value, v)]
        others = [(value, v) for value, v in pairs if not is_elsewhere(value, v)]
        self._scalars = StepScalars(number, rate)
        try:
            return super()._distributed_apply_gradients_fn(
                distribution, [*others, *packs.sent_in_packs(sent)], **keys
            )
        finally:
            self._scalars = None

    def _is_for_servers(self, distribution: tf.distribute.Strategy) -> bool:
        """Whether updates are made on parameter servers, from one replica's gradients, and not by
        XLA, whose functions cannot share tensors."""
        return (
            isinstance(distribution, tf.distribute.ParameterServerStrategy)
            and distribution.num_replicas_in_sync == 1
            and not self.jit_compile
        )


def is_elsewhere(gradient: Gradient, variable: tf.Variable) -> bool:
    """Whether it is a dense gradient that is not yet on its variable's device."""
    return not isinstance(gradient, tf.IndexedSlices) and gradient.device != variable.device


class Adam(PackingOptimizer, keras.optimizers.Adam):
    """Adam in one op."""

    def op_arguments(
        self, number: tf.Tensor, rate: tf.Tensor, kind: tf.DType
    ) -> dict[str, tf.Tensor]:
        number = tf.cast(number, kind)
        return {
            "beta1_power": tf.cast(self.beta_1, kind) ** number,
            "beta2_power": tf.cast(self.beta_2, kind) ** number,
            "lr": tf.cast(rate, kind),
            "beta1": tf.cast(self.beta_1, kind),
            "beta2": tf.cast(self.beta_2, kind),
            "epsilon": tf.cast(self.epsilon, kind),
        }

    def update_step(self, gradient: Gradient, variable: tf.Variable) -> None:
        if isinstance(gradient, tf.IndexedSlices) or self.amsgrad:
            super().update_step(gradient, variable)
            return
        index = self._index_dict[self._var_key(variable)]
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].handle,
            v=self._velocities[index].handle,
            grad=gradient,
            **self.arguments_for(variable),
        )


class SGD(PackingOptimizer, keras.optimizers.SGD):
    """Gradient descent with momentum in one op."""

    def op_arguments(
        self, number: tf.Tensor, rate: tf.Tensor, kind: tf.DType
    ) -> dict[str, tf.Tensor]:
        return {"lr": tf.cast(rate, kind), "momentum": tf.cast(self.momentum, kind)}

    def update_step(self, gradient: Gradient, variable: tf.Variable) -> None:
        if isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable)
            return
        tf.raw_ops.ResourceApplyKerasMomentum(
            var=variable.handle,
            accum=self.momentums[self._index_dict[self._var_key(variable)]].handle,
            grad=gradient,
            use_nesterov=self.nesterov,
            **self.arguments_for(variable),
        )


class RMSprop(PackingOptimizer, keras.optimizers.RMSprop):
    """RMSprop with momentum in one op."""

    def op_arguments(
        self, number: tf.Tensor, rate: tf.Tensor, kind: tf.DType
    ) -> dict[str, tf.Tensor]:
        return {
            "lr": tf.cast(rate, kind),
            "rho": tf.cast(self.rho, kind),
            "momentum": tf.cast(self.momentum, kind),
            "epsilon": tf.cast(self.epsilon, kind),
        }

    def update_step(self, gradient: Gradient, variable: tf.Variable) -> None:
        if isinstance(gradient, tf.IndexedSlices) or self.centered or not self.momentum:
            super().update_step(gradient, variable)
            return
        index = self._index_dict[self._var_key(variable)]
        tf.raw_ops.ResourceApplyRMSProp(
            var=variable.handle,
            ms=self._velocities[index].handle,
            mom=self._momentums[index].handle,
            grad=gradient,
            **self.arguments_for(variable),
        )
