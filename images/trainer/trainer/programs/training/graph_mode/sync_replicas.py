"""Synchronous updates: one update per round with the gradients of all replicas; each replica has
its own queue.

Each replica pushes a gradient for each token that it has received, and takes the next token from
its queue. The chief's round waits for the gradients, applies their mean once, and puts the new
token into every queue. So a replica cannot take a token of another replica. A token is `base +
global step`, and each start of a chief increases the base: gradients and tokens of an earlier
chief, or of a worker before a restart, have smaller tokens and are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from trainer.programs.training import packs
from trainer.programs.training.graph_mode import packed_steps
from trainer.programs.training.graph_mode.counters import SharedCounters, counted, variable
from trainer.programs.training.graph_mode.model_deploy import clipped
from trainer.programs.training.graph_mode.replica import Replica
from trainer.programs.training.packs import GradientsAndVariables, Pack

tf1 = tf.compat.v1
STEP_BITS = 32
"""The number of low bits of a token that have the global step; the high bits have the base."""
EPOCH = 1_700_000_000
STOP = 2**62
"""A token larger than every other: the job has ended before its last step."""
CAPACITY = 1 << 20


@dataclass(frozen=True)
class ReplicaOps:
    """The ops that every replica runs."""

    token: tf.Tensor
    """A placeholder for the token of the replica's gradient; int64 scalar."""
    position: tf.Tensor
    """Running it pushes the gradient and waits for the next token. Its value is [token, end_at],
    int64."""
    next_token: tf.Tensor
    """The newest token in the replica's own queue; running it waits for one."""
    now: tf.Tensor
    """base + global step, int64 scalar."""


@dataclass(frozen=True)
class ChiefOps:
    """The ops that only the chief runs."""

    apply: tf.Tensor
    """Running it makes a round: it waits for the gradients, applies their mean, and sends tokens.
    Its value is the global step."""
    waiting: tf.Tensor
    """Running it makes the accumulators drop gradients for tokens older than `new_token`. Its value
    is the number of gradients that wait, by pack, [packs] int32."""
    take: Sequence[tf.Operation]
    """Each takes `take_count` gradients out of one accumulator."""
    take_count: tf.Tensor
    new_base: tf.Tensor
    """A placeholder for `base`."""
    begin: tf.Operation
    """Running it drops older gradients, sets `base`, then puts `new_token` into every queue."""


@dataclass(frozen=True)
class Rounds:
    """The ops of synchronous training."""

    replica: ReplicaOps
    chief: ChiefOps | None
    """None on the other replicas, whose graph is half as large without them."""
    base: tf.Variable
    """It has no value until the chief has started its rounds; the others wait for that."""
    new_token: tf.Tensor
    """A placeholder for a token."""
    send: tf.Operation
    """Running it puts `new_token` into every queue."""


def apply_in_rounds(
    counters: SharedCounters,
    replica: Replica,
    optimizer: tf1.train.Optimizer,
    gradients: GradientsAndVariables,
    clip_norm: float,
    updates: Sequence[tf.Operation],
) -> Rounds:
    """Return the ops of one replica; replicas share the accumulators and queues.

    Only the chief applies gradients, each round's mean clipped to `clip_norm`, and runs `updates`.
    """
    grouped = packs.packs_of([v for _, v in gradients])
    accumulators = [accumulator_of(pack) for pack in grouped]
    with tf1.device(counters.device):
        base = variable("job/base", ())
        queues = [token_queue(number) for number in range(replica.count)]
        new_token = tf1.placeholder(tf.int64, (), "new_token")
        send = sending(new_token, queues)
    replica_ops = push_and_wait(
        counters, replica.number, base, queues[replica.number], accumulators,
        packs.packed_gradients(gradients, grouped),
        packed_steps.updates_in_packs(updates) if replica.is_chief else [],
    )  # fmt: skip
    chief = None
    if replica.is_chief:
        with tf1.device(counters.device):
            taken = [take(a, replica.gradients_per_round) for a in accumulators]
            means = packs.unpacked_gradients(clipped(taken, clip_norm), grouped)
            chief = chief_ops(counters, base, queues, accumulators, means, optimizer, new_token)
    return Rounds(replica_ops, chief, base, new_token, send)


def chief_ops(
    counters: SharedCounters,
    base: tf.Variable,
    queues: Sequence[tf.queue.FIFOQueue],
    accumulators: Sequence[tf1.ConditionalAccumulator],
    means: GradientsAndVariables,
    optimizer: tf1.train.Optimizer,
    new_token: tf.Tensor,
) -> ChiefOps:
    """Return the ops that make rounds, and those that start them."""
    applied = apply_and_send(counters, base, optimizer, means, queues)
    new_base = tf1.placeholder(tf.int64, (), "new_base")
    count = tf1.placeholder(tf.int32, (), "count")
    drop_older = tf.group(*[a.set_global_step(new_token) for a in accumulators])
    with tf.control_dependencies([drop_older]):
        waiting = tf.stack([a.num_accumulated() for a in accumulators])
        based = base.assign(new_base)
    with tf.control_dependencies([based]):
        begin = sending(new_token, queues)
    return ChiefOps(
        apply=applied,
        waiting=waiting,
        take=[take(a, count).op for a in accumulators],
        take_count=count,
        new_base=new_base,
        begin=begin,
    )


def push_and_wait(
    counters: SharedCounters,
    replica: int,
    base: tf.Variable,
    queue: tf.queue.FIFOQueue,
    accumulators: Sequence[tf1.ConditionalAccumulator],
    gradients: Sequence[tf.Tensor],
    updates: Sequence[tf.Operation],
) -> ReplicaOps:
    """Return the ops of a replica's step; `updates` run with it."""
    with tf1.device(counters.device):
        before = counters.global_step.read_value()
        now = base.read_value() + counters.global_step.read_value()
    token = tf1.placeholder(tf.int64, (), "token")
    pushed = [
        push(gradient, accumulator, token) for accumulator, gradient in zip(accumulators, gradients)
    ]
    with tf1.device(counters.device):
        with tf.control_dependencies([*pushed, before, *updates]):
            received = newest(queue)
        next_token = newest(queue)
        after = tf.bitwise.bitwise_and(received, (1 << STEP_BITS) - 1)
        with tf.control_dependencies([counted(counters, replica, before, after)]):
            position = tf.stack([received, counters.end_at.read_value()])
    return ReplicaOps(token, position, next_token, now)


def apply_and_send(
    counters: SharedCounters,
    base: tf.Variable,
    optimizer: tf1.train.Optimizer,
    means: GradientsAndVariables,
    queues: Sequence[tf.queue.FIFOQueue],
) -> tf.Tensor:
    """Return the op of a round; its value is the global step after it, an int64 scalar."""
    with packs.read_on_ps([v for _, v in means]):
        applied = optimizer.apply_gradients(means)
    with tf.control_dependencies([applied]):
        step = counters.global_step.assign_add(1, read_value=True)
    with tf.control_dependencies([sending(base.read_value() + step, queues)]):
        return tf.identity(step)


def accumulator_of(pack: Pack) -> tf1.ConditionalAccumulator:
    """Return the accumulator of a pack's gradients, on its ps, shared by all replicas."""
    with tf1.device(pack[0].device):
        return tf1.ConditionalAccumulator(
            pack[0].dtype, (packs.elements_of(pack),), shared_name=f"gradients/{pack[0].op.name}"
        )


def take(of: tf1.ConditionalAccumulator, count: int | tf.Tensor) -> tf.Tensor:
    """Return the mean of `count` gradients; running it waits for them, and takes them out."""
    with tf1.device(of.accumulator_ref.device):
        return of.take_grad(count)


def push(gradient: tf.Tensor, to: tf1.ConditionalAccumulator, token: tf.Tensor) -> tf.Operation:
    """Return the op that adds `gradient` to the accumulator, unless `token` is too old."""
    with tf1.device(to.accumulator_ref.device):
        return to.apply_grad(gradient, local_step=token)


def token_queue(number: int) -> tf.queue.FIFOQueue:
    """Return the queue of replica `number`, shared by all replicas."""
    return tf.queue.FIFOQueue(CAPACITY, [tf.int64], [()], shared_name=f"tokens/{number}")


def newest(queue: tf.queue.FIFOQueue) -> tf.Tensor:
    """Wait for a token and return the newest, so that a slow replica skips missed rounds."""
    return queue.dequeue_many(tf.maximum(queue.size(), 1))[-1]


def sending(token: tf.Tensor, queues: Sequence[tf.queue.FIFOQueue]) -> tf.Operation:
    """Return the op that puts `token` into every queue."""
    return tf.group(*[queue.enqueue(token) for queue in queues])


def start_rounds(rounds: Rounds, step: int, session: tf1.Session) -> None:
    """Drop an earlier chief's data, and wake all replicas; the chief calls it before its first
    round.

    In few runs: TensorFlow prepares the whole graph for each new set of ops.

    Args:
        step: the global step.
    """
    base = int(time.time() - EPOCH) << STEP_BITS
    first = {rounds.new_token: base + step}
    chief = rounds.chief
    counts = session.run(chief.waiting, first)
    for count in set(counts[counts > 0].tolist()):
        takes = [take for take, waiting in zip(chief.take, counts) if waiting == count]
        session.run(takes, {chief.take_count: count})
    # Taking gradients has increased the accumulators' step by 1: `begin` sets it again.
    session.run(chief.begin, {**first, chief.new_base: base})
