"""How gradients become an update: each as it arrives (async), or a round of all (sync).

Sync has no token that any replica could take, and no start gate. Each replica pushes one gradient
for each stamp it was given, and has a queue of its own from which it takes the next stamp; the
chief's rounds wait for the gradients, apply their mean once, and put the new stamp into every
queue. A stamp is `base + global step`, and each start of a chief makes a larger base: whatever an
earlier chief, or a worker from before the restart, left behind is older, and is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import tensorflow as tf

from trainer.training.graph_mode.graph.counters import Ledger, assign, counted, variable
from trainer.training.graph_mode.graph.model_deploy import GradientsAndVariables

tf1 = tf.compat.v1
STEP_BITS = 32
EPOCH = 1_700_000_000
STOP = 2**62
"""Larger than every stamp: the job has ended before its last step."""
CAPACITY = 1 << 20


def apply_at_once(
    ledger: Ledger,
    replica: int,
    optimizer: tf1.train.Optimizer,
    gradients: GradientsAndVariables,
    updates: Sequence[tf.Operation],
) -> tf.Tensor:
    """Async, and a replica alone: apply, count, and return [global step, end_at]."""
    with tf1.device(ledger.device):
        before = ledger.global_step.read_value()
    applied = optimizer.apply_gradients(gradients)
    with tf1.device(ledger.device), tf.control_dependencies([applied, before, *updates]):
        after = ledger.global_step.assign_add(1, read_value=True)
    return counted(ledger, replica, before, after)


@dataclass(frozen=True)
class Rounds:
    """Sync. The ops of one replica's step, and those of the chief alone."""

    stamp: tf.Tensor
    """To feed: the stamp that the replica's gradient is for."""
    position: tf.Tensor
    """Pushes, waits for the next stamp, and is [stamp, end_at]."""
    next_stamp: tf.Tensor
    """The newest stamp in the replica's own queue, once there is one."""
    now: tf.Tensor
    """base + global step."""
    base: tf.Variable
    """Has no value until the chief has started its rounds: so long the others wait."""
    apply: tf.Tensor
    """The round: waits for the gradients, applies their mean, sends stamps; the global step."""
    accumulated: tf.Tensor
    """Gradients that wait, by variable."""
    take: Sequence[tf.Operation]
    """Takes `take_count` gradients out of one accumulator."""
    take_count: tf.Tensor
    told: tf.Tensor
    """To feed: a stamp."""
    drop_older: tf.Operation
    """Lets the accumulators take no gradient that is for an older stamp than `told`."""
    send: tf.Operation
    """Puts `told` into every queue."""


def apply_in_rounds(
    ledger: Ledger,
    replica: int,
    gradients_per_round: int,
    optimizer: tf1.train.Optimizer,
    gradients: GradientsAndVariables,
    updates: Sequence[tf.Operation],
) -> Rounds:
    """The graph of a synchronous replica; every one has the same accumulators and queues."""
    accumulators = [accumulator_of(v) for _, v in gradients]
    replicas = len(ledger.counts)
    with tf1.device(ledger.device):
        base = variable("job/base", ())
        queues = [stamp_queue(number) for number in range(replicas)]
        before = ledger.global_step.read_value()
        now = base.read_value() + ledger.global_step.read_value()
    stamp = tf1.placeholder(tf.int64, (), "stamp")
    pushed = [
        push(gradient, v, accumulator, stamp)
        for accumulator, (gradient, v) in zip(accumulators, gradients, strict=True)
    ]
    with tf1.device(ledger.device):
        with tf.control_dependencies([*pushed, before, *updates]):
            received = newest(queues[replica])
        next_stamp = newest(queues[replica])
        after = tf.bitwise.bitwise_and(received, (1 << STEP_BITS) - 1)
        with tf.control_dependencies([counted(ledger, replica, before, after)]):
            position = tf.stack([received, ledger.end_at.read_value()])
    means = [
        (accumulator.take_grad(gradients_per_round), v)
        for accumulator, (_, v) in zip(accumulators, gradients, strict=True)
    ]
    with tf1.device(ledger.device):
        with tf.control_dependencies([optimizer.apply_gradients(means)]):
            step = ledger.global_step.assign_add(1, read_value=True)
        stamps = [queue.enqueue(base.read_value() + step) for queue in queues]
        with tf.control_dependencies(stamps):
            applied = tf.identity(step)
        told = tf1.placeholder(tf.int64, (), "told")
        count = tf1.placeholder(tf.int32, (), "count")
        return Rounds(
            stamp=stamp,
            position=position,
            next_stamp=next_stamp,
            now=now,
            base=base,
            apply=applied,
            accumulated=tf.stack([a.num_accumulated() for a in accumulators]),
            take=[a.take_grad(count).op for a in accumulators],
            take_count=count,
            told=told,
            drop_older=tf.group(*[a.set_global_step(told) for a in accumulators]),
            send=tf.group(*[queue.enqueue(told) for queue in queues]),
        )


def accumulator_of(v: tf.Variable) -> tf1.ConditionalAccumulator:
    """One per variable, beside it, found by its name by all replicas."""
    with tf1.device(v.device):
        return tf1.ConditionalAccumulator(
            v.dtype.base_dtype, v.shape, shared_name=f"gradients/{v.op.name}"
        )


def push(
    gradient: tf.Tensor, v: tf.Variable, to: tf1.ConditionalAccumulator, stamp: tf.Tensor
) -> tf.Operation:
    with tf1.device(v.device):
        return to.apply_grad(gradient, local_step=stamp)


def stamp_queue(number: int) -> tf.queue.FIFOQueue:
    return tf.queue.FIFOQueue(CAPACITY, [tf.int64], [()], shared_name=f"stamps/{number}")


def newest(queue: tf.queue.FIFOQueue) -> tf.Tensor:
    """Waits for a stamp, and takes all that are there: a slow replica skips what it missed."""
    return queue.dequeue_many(tf.maximum(queue.size(), 1))[-1]


def start_rounds(rounds: Rounds, global_step: tf.Variable, session: tf1.Session) -> None:
    """By the chief, before the first round: forget what an earlier one left, and wake everybody."""
    base = int(time.time() - EPOCH) << STEP_BITS
    told = {rounds.told: base + int(session.run(global_step))}
    session.run(rounds.drop_older, told)
    for count, take in zip(session.run(rounds.accumulated), rounds.take, strict=True):
        if count:
            session.run(take, {rounds.take_count: count})
    session.run(rounds.drop_older, told)  # taking has moved it on by one
    assign(session, rounds.base, base)
    session.run(rounds.send, told)
