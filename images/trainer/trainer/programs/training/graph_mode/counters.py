"""The counters that all replicas share: global step, end of the job, steps per replica.

All of them are on the first ps. The training step itself reads and writes them, so they need no
additional messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
BINS = 256
"""Staleness is counted exactly up to 254; the last bin is `255 or more`."""
LAST_STEP = 2**62


@dataclass(frozen=True)
class SharedCounters:
    """Variables, all int64."""

    device: str
    global_step: tf.Variable
    end_at: tf.Variable
    """The job ends at this global step; the chief lowers it to end early."""
    finished: tf.Variable
    """[replicas]: not 0 for replicas that make no further step."""
    over: tf.Variable
    """1 when the chief has saved the last checkpoint: the other replicas may end."""
    counts: tuple[tf.Variable, ...]
    """For each replica [BINS]: the number of its steps by staleness."""

    @property
    def of_this_run(self) -> tuple[tf.Variable, ...]:
        """Returns the counters of this run, which are not part of a checkpoint."""
        return (self.end_at, self.finished, self.over)


def make_counters(device: str, replicas: int, end_at: int) -> SharedCounters:
    """Create the variables on `device`; `end_at` is the last global step."""
    with tf1.device(device):
        step = tf1.train.get_or_create_global_step()
        return SharedCounters(
            device=step.device,
            global_step=step,
            end_at=variable("job/end_at", (), end_at),
            finished=variable("job/finished", (replicas,)),
            over=variable("job/over", ()),
            counts=tuple(variable(f"job/steps_of_{n}", (BINS,)) for n in range(replicas)),
        )


def variable(name: str, shape: tuple[int, ...], value: int = 0) -> tf.Variable:
    """Return an int64 variable that is not trained."""
    return tf1.get_variable(
        name, shape, tf.int64, tf1.constant_initializer(value), trainable=False, use_resource=True
    )


def assign(session: tf1.Session, *values: tuple[tf.Variable, object]) -> None:
    """Set variables by feeding their initialisers: no op is added to the graph.

    All of them in one run: TensorFlow prepares the whole graph once for each set of ops, which
    takes 0.1 s for a MobileNetV2.
    """
    initializers = [variable.initializer for variable, _ in values]
    fed = zip(initializers, values)
    session.run(initializers, {op.inputs[1]: value for op, (_, value) in fed})


def counted(
    counters: SharedCounters, replica: int, before: tf.Tensor, after: tf.Tensor
) -> tf.Tensor:
    """Count this step of `replica`, then return [global step after, end_at], int64.

    The step's staleness is the number of updates by other replicas between `before` and `after`.
    """
    with tf1.device(counters.device):
        stale = tf.clip_by_value(after - 1 - before, 0, BINS - 1)
        written = tf.raw_ops.ResourceScatterAdd(
            resource=counters.counts[replica].handle,
            indices=stale,
            updates=tf.constant(1, tf.int64),
        )
        with tf.control_dependencies([written]):
            return tf.stack([after, counters.end_at.read_value()])


@dataclass(frozen=True)
class Shares:
    """The steps of each replica, by number, and the staleness over all steps."""

    steps: tuple[int, ...]
    staleness_mean: float
    staleness_max: int


def shares(counts: list[np.ndarray]) -> Shares:
    """Return the shares from the values of SharedCounters.counts, each [BINS]."""
    total = np.sum(counts, axis=0)
    seen = np.flatnonzero(total)
    mean = float(np.average(np.arange(BINS), weights=total)) if seen.size else 0.0
    steps = tuple(int(count.sum()) for count in counts)
    return Shares(steps, mean, int(seen[-1]) if seen.size else 0)
