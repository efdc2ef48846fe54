"""Trains without an end, in graph mode or by an all-reduce: growth.py measures what it costs.

It does not use the kit, and runs unchanged in both ways. Each worker prints "first STEP" after its
first step; worker 0 then prints "at STEP" every half second, each with the time. A step of
`all-reduce` is an update by all workers together, one of `async` an update by any of them, and one
of `sync` an update from as many gradients as there are workers, by those that train already.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import tensorflow as tf

VARIABLES = 8
EVERY_S = 0.5
FLOATS_PER_MB = 250_000
v1 = tf.compat.v1


def shapes(megabytes: int) -> list[tuple[int, ...]]:
    """Returns the shapes of the model's variables, which have this size together."""
    return [(megabytes * FLOATS_PER_MB // VARIABLES,)] * VARIABLES


def loop(step: Callable[[], int], leads: bool) -> None:
    """Make steps forever; `step` returns the number of updates so far."""
    told = 0.0
    while True:
        count, now = step(), time.time()
        if not told or (leads and now - told >= EVERY_S):
            print("at" if told else "first", count, f"{now:.3f}", flush=True)
            told = now


def loss_of(variables: list[tf.Variable]) -> tf.Tensor:
    """Returns a loss whose gradient is as large as the variables, and cheap."""
    return tf.add_n([tf.reduce_mean(tf.square(one - 1.0)) for one in variables])


def in_graph_mode(
    resolver: tf.distribute.cluster_resolver.ClusterResolver, megabytes: int, sync: bool
) -> None:
    v1.disable_eager_execution()
    cluster, index = resolver.cluster_spec(), resolver.task_id
    server = tf.distribute.Server(cluster, job_name=resolver.task_type, task_index=index)
    if resolver.task_type == "ps":
        server.join()
    workers = len(cluster.as_dict()["worker"])
    with v1.device(
        v1.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)
    ):
        variables = [
            v1.get_variable(f"part_{number}", shape)
            for number, shape in enumerate(shapes(megabytes))
        ]
        updates = v1.train.get_or_create_global_step()
        optimizer = v1.train.GradientDescentOptimizer(0.01)
        hooks = []
        if sync:
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, workers, workers)
            hooks.append(optimizer.make_session_run_hook(index == 0))
        train = optimizer.minimize(loss_of(variables), global_step=updates)
    with v1.train.MonitoredTrainingSession(
        server.target, is_chief=index == 0, hooks=hooks
    ) as session:
        loop(lambda: int(session.run([train, updates])[1]), leads=index == 0)


def by_all_reduce(resolver: tf.distribute.cluster_resolver.ClusterResolver, megabytes: int) -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
    with strategy.scope():
        variables = [tf.Variable(tf.zeros(shape)) for shape in shapes(megabytes)]
    made = 0

    @tf.function
    def step() -> None:
        def replica() -> None:
            with tf.GradientTape() as tape:
                value = loss_of(variables)
            context = tf.distribute.get_replica_context()
            mean = context.all_reduce("mean", tape.gradient(value, variables))
            for variable, gradient in zip(variables, mean, strict=True):
                variable.assign_sub(0.01 * gradient)

        strategy.run(replica)

    def counted() -> int:
        nonlocal made
        step()
        made += 1
        return made

    loop(counted, leads=resolver.task_id == 0)


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("kind", choices=("async", "sync", "all-reduce"))
    options.add_argument("megabytes", type=int)
    given = options.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if given.kind == "all-reduce":
        by_all_reduce(resolver, given.megabytes)
    else:
        in_graph_mode(resolver, given.megabytes, given.kind == "sync")


if __name__ == "__main__":
    main()
