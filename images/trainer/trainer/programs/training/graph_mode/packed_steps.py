"""Graph mode reads variables in packs, and sends updates of BatchNorm's averages in packs."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from trainer.programs.training.graph_mode.model_deploy import added
from trainer.programs.training.packs import (
    packed_gradients,
    packs_of,
    unpacked_gradients,
    values_of,
)

tf1 = tf.compat.v1


def read_in_packs(variables: Sequence[tf.Variable], device: str) -> None:
    """Let a step read each pack once, to `device`, for all its clones.

    TensorFlow's own `caching_device` does so for each variable by itself. A variable of which the
    model reads only some rows is read whole if it is in a pack with others.
    """
    graph = tf1.get_default_graph()
    with tf1.device(device):
        for pack in packs_of(variables):
            for v, value in zip(pack, values_of(pack, graph.as_graph_element)):
                v._cached_value = value


def gradients_of(loss: tf.Tensor) -> list[tuple[tf.Tensor | None, tf.Variable]]:
    """Return the gradient of each trained variable, None if `loss` does not depend on it.

    Gradients through a whole pack would be zeros for such a variable. So they end at the values out
    of the packs; what else is read of a variable, such as some rows, is added.
    """
    variables = tf1.trainable_variables()
    in_packs = [v for v in variables if v._cached_value is not None]
    values = [v._cached_value for v in in_packs]
    found = tf1.gradients(loss, [*(v.handle for v in variables), *values], stop_gradients=values)
    of_values = {v.ref(): gradient for v, gradient in zip(in_packs, found[len(variables) :])}
    return [(added([rest, of_values.get(v.ref())]), v) for rest, v in zip(found, variables)]


ASSIGNMENTS = {
    "AssignVariableOp": tf.raw_ops.AssignVariableOp,
    "AssignAddVariableOp": tf.raw_ops.AssignAddVariableOp,
    "AssignSubVariableOp": tf.raw_ops.AssignSubVariableOp,
}


def updates_in_packs(updates: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Return the updates; what assignments assign is computed on this replica, and sent in packs.

    tf_keras computes BatchNorm's averages on the ps: it sends batch value, average, decay and a
    signal for each.
    """
    variables = {v.handle.op: v for v in tf1.global_variables()}
    assign_ops, values, before, result = {}, [], [], []
    for update in dict.fromkeys(getattr(given, "op", given) for given in updates):
        v = variables.get(update.inputs[0].op) if update.type in ASSIGNMENTS else None
        if v is None or v.ref() in assign_ops:
            result.append(update)
            continue
        assign_ops[v.ref()] = ASSIGNMENTS[update.type]
        values.append((copied_from(update.inputs[1], v.device, {}), v))
        before += update.control_inputs
    packs = packs_of([v for _, v in values])
    with tf.control_dependencies(before):
        vectors = [tf.identity(vector) for vector in packed_gradients(values, packs)]
    for value, v in unpacked_gradients(vectors, packs):
        with tf1.device(v.device):
            result.append(assign_ops[v.ref()](resource=v.handle, value=value))
    return result


def copied_from(
    value: tf.Tensor, device: str, copies: dict[tf.Operation, tf.Operation]
) -> tf.Tensor:
    """Return the same value, computed on the current device: ops on `device` are copied, except
    those with a state, such as reads of variables, and those that wait for others."""
    op = value.op
    if op.device != device or op.op_def.is_stateful or op.control_inputs:
        return value
    if op not in copies:
        copies[op] = op.graph.create_op(
            op.type,
            [copied_from(given, device, copies) for given in op.inputs],
            [output.dtype for output in op.outputs],
            name=op.name,
            attrs={name: attr for name, attr in op.node_def.attr.items() if name != "_class"},
        )
    return copies[op].outputs[value.value_index]
