"""Device functions: variables where the deployment keeps them, everything else where it is put."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from trainer.programs.training.graph_mode.deployment import DeploymentConfig

VARIABLE_OPS = ("VarHandleOp", "Variable", "VariableV2", "AutoReloadVariable")


class Placement:
    """Spreads the variables of one graph over the ps tasks: each goes to the one with fewest bytes.

    The choice depends on the order of creation alone, so every replica makes the same.
    """

    def __init__(self, config: DeploymentConfig) -> None:
        self._config = config
        self._bytes = [0] * max(1, config.num_ps_tasks if config.distributed else 1)

    def around(self, device: str) -> Callable[[tf.Operation], str]:
        """For tf.device: variables on the ps (in one process: on their device), the rest on
        `device`. What an op or an inner tf.device says itself comes first."""

        def choose(op: tf.Operation) -> str:
            asked = tf.compat.v1.DeviceSpec.from_string(op.device or "")
            wanted = device
            if op.type in VARIABLE_OPS:
                wanted = self._config.variables_device()
                if self._config.distributed and asked.job is None:
                    wanted += f"/task:{self._lightest(op)}"
            return tf.compat.v1.DeviceSpec.from_string(wanted).make_merged_spec(asked).to_string()

        return choose

    def _lightest(self, op: tf.Operation) -> int:
        size = tf.TensorShape(op.get_attr("shape")).num_elements() or 1
        task = self._bytes.index(min(self._bytes))
        self._bytes[task] += size * tf.as_dtype(op.get_attr("dtype")).size
        return task
