"""Variables in packs: a step sends the values or the gradients of a pack as one vector.

Each tensor between a replica and a ps costs both a remote call, which takes longer than to send the
few bytes of most variables: the detector on MobileNetV2 has 124 that are trained, and 80 averages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import tensorflow as tf

from trainer.programs.training.graph_mode.model_deploy import GradientsAndVariables, added

tf1 = tf.compat.v1
Pack = Sequence[tf.Variable]
"""Variables on one ps, of one type, and all trained or none."""
PACK_BYTES = 1 << 20
"""A larger pack would be sent later: it waits for the last of its values."""


def packs_of(variables: Sequence[tf.Variable]) -> list[Pack]:
    """Return the variables in packs of at most PACK_BYTES, in their order; one of more than half of
    it has a pack of its own, so that small ones before and after it share one."""
    packs: list[list[tf.Variable]] = []
    newest: dict[tuple, tuple[list[tf.Variable], int]] = {}
    for v in variables:
        size = size_of(v)
        if size > PACK_BYTES // 2:
            packs.append([v])
            continue
        alike = v.device, v.dtype, v.trainable
        pack, filled = newest.get(alike, ([], 0))
        if not pack or filled + size > PACK_BYTES:
            pack, filled = [], 0
            packs.append(pack)
        pack.append(v)
        newest[alike] = pack, filled + size
    return packs


def size_of(v: tf.Variable) -> int:
    """Return the bytes of its value."""
    return v.shape.num_elements() * v.dtype.size


def packed(values: Sequence[tf.Tensor]) -> tf.Tensor:
    """Return all values one after the other, [elements]."""
    flat = [value if value.shape.rank == 1 else tf.reshape(value, (-1,)) for value in values]
    return tf.concat(flat, 0) if len(flat) > 1 else flat[0]


def unpacked(vector: tf.Tensor, pack: Pack) -> list[tf.Tensor]:
    """Return the values of a pack's variables out of their vector."""
    sizes = [v.shape.num_elements() for v in pack]
    parts = tf.split(vector, sizes) if len(sizes) > 1 else [vector]
    return [
        part if v.shape.rank == 1 else tf.reshape(part, v.shape) for part, v in zip(parts, pack)
    ]


def read_in_packs(variables: Sequence[tf.Variable], device: str) -> None:
    """Let a step read each pack once, to `device`, for all its clones.

    TensorFlow's own `caching_device` does so for each variable by itself. A variable of which the
    model reads only some rows is read whole if it is in a pack with others.
    """
    graph = tf1.get_default_graph()
    for pack in packs_of(variables):
        with tf1.device(pack[0].device):
            vector = packed([graph.as_graph_element(v) for v in pack])
        with tf1.device(device):
            for v, value in zip(pack, unpacked(tf.identity(vector), pack)):
                v._cached_value = value


@contextlib.contextmanager
def read_on_ps(variables: Sequence[tf.Variable]) -> Iterator[None]:
    """Within the block, reading a variable reads it on its ps, not what the step began with."""
    kept = [v._cached_value for v in variables]
    for v in variables:
        v._cached_value = None
    try:
        yield
    finally:
        for v, value in zip(variables, kept):
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


def packed_gradients(gradients: GradientsAndVariables, packs: Sequence[Pack]) -> list[tf.Tensor]:
    """Return the gradients of each pack in one vector, [elements of the pack]."""
    by_variable = {v.ref(): gradient for gradient, v in gradients}
    return [packed([by_variable[v.ref()] for v in pack]) for pack in packs]


def unpacked_gradients(
    vectors: Sequence[tf.Tensor], packs: Sequence[Pack]
) -> GradientsAndVariables:
    """Return the gradients, each on the ps of its variable."""
    gradients = []
    for vector, pack in zip(vectors, packs):
        with tf1.device(pack[0].device):
            gradients += zip(unpacked(vector, pack), pack)
    return gradients


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
