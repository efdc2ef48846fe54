"""tf_keras's optimizers with the same variables and the same updates, each by one op; and how many
updates one has made.

tf_keras takes five to ten ops for the update of a variable. Each passes over all of its weights in
memory, and a chief takes milliseconds to trace it. Sparse gradients and rarer options are left to
tf_keras.
"""

from __future__ import annotations

import tensorflow as tf

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


class Adam(keras.optimizers.Adam):
    """Adam in one op."""

    def update_step(self, gradient: Gradient, variable: tf.Variable) -> None:
        if isinstance(gradient, tf.IndexedSlices) or self.amsgrad:
            super().update_step(gradient, variable)
            return
        index = self._index_dict[self._var_key(variable)]
        kind = variable.dtype
        steps = tf.cast(self.iterations + 1, kind)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].handle,
            v=self._velocities[index].handle,
            beta1_power=tf.cast(self.beta_1, kind) ** steps,
            beta2_power=tf.cast(self.beta_2, kind) ** steps,
            lr=tf.cast(self.learning_rate, kind),
            beta1=tf.cast(self.beta_1, kind),
            beta2=tf.cast(self.beta_2, kind),
            epsilon=tf.cast(self.epsilon, kind),
            grad=gradient,
        )


class SGD(keras.optimizers.SGD):
    """Gradient descent with momentum in one op."""

    def update_step(self, gradient: Gradient, variable: tf.Variable) -> None:
        if isinstance(gradient, tf.IndexedSlices):
            super().update_step(gradient, variable)
            return
        kind = variable.dtype
        tf.raw_ops.ResourceApplyKerasMomentum(
            var=variable.handle,
            accum=self.momentums[self._index_dict[self._var_key(variable)]].handle,
            lr=tf.cast(self.learning_rate, kind),
            grad=gradient,
            momentum=tf.cast(self.momentum, kind),
            use_nesterov=self.nesterov,
        )


class RMSprop(keras.optimizers.RMSprop):
    """RMSprop with momentum in one op."""

    def update_step(self, gradient: Gradient, variable: tf.Variable) -> None:
        if isinstance(gradient, tf.IndexedSlices) or self.centered or not self.momentum:
            super().update_step(gradient, variable)
            return
        index = self._index_dict[self._var_key(variable)]
        kind = variable.dtype
        tf.raw_ops.ResourceApplyRMSProp(
            var=variable.handle,
            ms=self._velocities[index].handle,
            mom=self._momentums[index].handle,
            lr=tf.cast(self.learning_rate, kind),
            rho=tf.cast(self.rho, kind),
            momentum=tf.cast(self.momentum, kind),
            epsilon=tf.cast(self.epsilon, kind),
            grad=gradient,
        )
