"""Variables in packs: a step sends the values or the gradients of a pack as one vector.

Each tensor between a worker and a ps costs both a remote call, which takes longer than to send the
few bytes of most variables: the detector on MobileNetV2 has 124 that are trained, and 80 averages.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import tensorflow as tf

keras = tf.keras
Pack = Sequence[tf.Variable]
"""Variables on one ps, of one type, and with one value of `trainable`."""
GradientsAndVariables = list[tuple[tf.Tensor, tf.Variable]]
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


def elements_of(pack: Pack) -> int:
    """Return the length of the pack's vector."""
    return sum(v.shape.num_elements() for v in pack)


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


def values_of(pack: Pack, read: Callable[[tf.Variable], tf.Tensor]) -> list[tf.Tensor]:
    """Return the values of its variables on the current device, sent there as one vector; `read`
    reads a variable on its ps."""
    with tf.device(pack[0].device):
        vector = packed([read(v) for v in pack])
    return unpacked(tf.identity(vector), pack)


def packed_gradients(gradients: GradientsAndVariables, packs: Sequence[Pack]) -> list[tf.Tensor]:
    """Return the gradients of each pack in one vector, [elements of the pack]."""
    by_variable = {v.ref(): gradient for gradient, v in gradients}
    return [packed([by_variable[v.ref()] for v in pack]) for pack in packs]


def unpacked_gradients(
    vectors: Sequence[tf.Tensor], packs: Sequence[Pack]
) -> GradientsAndVariables:
    """Return the gradients, taken out of the packs on the ps of their variables."""
    gradients = []
    for vector, pack in zip(vectors, packs):
        with tf.device(pack[0].device):
            gradients += zip(unpacked(vector, pack), pack)
    return gradients


def sent_in_packs(gradients: GradientsAndVariables) -> GradientsAndVariables:
    """Return the gradients, or other values for variables, after they were sent in packs."""
    packs = packs_of([v for _, v in gradients])
    return unpacked_gradients(packed_gradients(gradients, packs), packs)


@contextlib.contextmanager
def reading(variables: Sequence[tf.Variable], values: Sequence[tf.Tensor | None]) -> Iterator[None]:
    """Within the block, reading a variable gives its value in `values`; None reads it on its ps.
    Only the thread that builds the graph may read the variables meanwhile."""
    variables = [stored(v) for v in variables]
    kept = [v._cached_value for v in variables]
    try:
        for v, value in zip(variables, values):
            v._cached_value = value
        yield
    finally:
        for v, value in zip(variables, kept):
            v._cached_value = value


def read_on_ps(variables: Sequence[tf.Variable]) -> contextlib.AbstractContextManager[None]:
    """Within the block, reading a variable reads it on its ps, not what the step began with."""
    return reading(variables, [None] * len(variables))


def stored(v: tf.Variable) -> tf.Variable:
    """Return the variable on a ps itself, without the wrappers of ParameterServerStrategy."""
    while hasattr(v, "_v"):
        v = v._v
    return v


@contextlib.contextmanager
def pulled(network: keras.Model) -> Iterator[list[tf.Variable | tf.Tensor]]:
    """Within the block, a worker of a coordinator calls the model with values that it reads in
    packs; at its end BatchNorm's averages are sent in packs.

    Yields the weights to differentiate by, in the order of `trainable_variables`. A gradient tape
    must watch them, since they are tensors; what the model reads of a variable by rows has no
    gradient. If a worker has several replicas, yields the variables and makes no packs: replicas
    are traced in turns, and would see each other's values.
    """
    if tf.distribute.get_strategy().num_replicas_in_sync > 1:
        yield network.trainable_variables
        return
    variables, values = [], []
    for pack in packs_of(network.variables):
        variables += pack
        values += values_of(pack, lambda v: stored(v).read_value())
    by_variable = {v.ref(): value for v, value in zip(variables, values)}
    with reading(variables, values), new_averages(network) as averages:
        yield [by_variable[v.ref()] for v in network.trainable_variables]
    means = [(tf.add_n(of_clones) / len(of_clones), v) for v, of_clones in averages.values()]
    for mean, v in sent_in_packs(means):
        with tf.device(v.device):
            v.assign(mean, read_value=False)


@contextlib.contextmanager
def new_averages(
    network: keras.Model,
) -> Iterator[dict[object, tuple[tf.Variable, list[tf.Tensor]]]]:
    """Within the block, BatchNorm's new averages are kept in what it yields, and not assigned: by
    variable, one of each clone that calls the model.

    Only of images, for which BatchNorm is one fused op, and of layers that are not in an inner
    model: all BatchNorm in the built-in programs.
    """
    averages: dict[object, tuple[tf.Variable, list[tf.Tensor]]] = {}

    def keep(variable: tf.Variable, value: tf.Tensor) -> None:
        averages.setdefault(variable.ref(), (variable, []))[1].append(value)

    norms = [one for one in network.layers if isinstance(one, keras.layers.BatchNormalization)]
    try:
        for norm in norms:
            norm._assign_new_value = keep
        yield averages
    finally:
        for norm in norms:
            vars(norm).pop("_assign_new_value", None)
