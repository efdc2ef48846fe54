"""Trains a few dense layers in one of three ways, for so many steps of each worker.

Each step multiplies matrices for a fixed time of CPU. `--model fat` has one layer with nine tenths
of all bytes. It is the program of tests/predict/here, and of no use otherwise.
"""

import argparse
import json
import os
import time
from itertools import pairwise
from pathlib import Path

import tensorflow as tf

LAYERS = {"small": (64, 128, 128, 64), "fat": (64, 256, 1024, 16)}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", choices=("async-ps", "sync-ps", "ring"), required=True)
    parser.add_argument("--model", choices=LAYERS, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    return parser.parse_args()


def tell(event, **fields):
    with Path(os.environ["CLUSTER_KIT_PROGRESS"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"time": time.time(), "event": event, **fields}) + "\n")


def new_variables(sizes):
    for number, (before, after) in enumerate(pairwise(sizes)):
        yield tf.Variable(tf.random.normal((before, after), stddev=0.01), name=f"kernel_{number}")
        yield tf.Variable(tf.zeros((after,)), name=f"bias_{number}")


def gradients(variables, batch):
    images = tf.random.uniform((batch, variables[0].shape[0]))
    with tf.GradientTape() as tape:
        values = [tf.convert_to_tensor(one) for one in variables]
        tape.watch(values)
        layer = images
        for kernel, bias in zip(values[::2], values[1::2], strict=True):
            layer = tf.nn.relu(tf.matmul(layer, kernel) + bias)
        loss = tf.reduce_mean(tf.square(layer))
    return tape.gradient(loss, values)


def with_ps(given):
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    workers = len(resolver.cluster_spec().as_dict()["worker"])
    is_sync = given.way == "sync-ps"
    with strategy.scope():
        variables = list(new_variables(LAYERS[given.model]))
    tell("training", images_per_step=given.batch * (workers if is_sync else 1))
    sums = []
    for variable in variables if is_sync else ():
        with tf.device(variable.device):
            sums.append(tf.Variable(tf.zeros(variable.shape), trainable=False))

    @tf.function
    def step():
        for target, gradient in zip(
            sums or variables, gradients(variables, given.batch), strict=True
        ):
            target.assign_add(gradient if sums else -0.001 * gradient)

    @tf.function
    def apply():
        for variable, total in zip(variables, sums, strict=True):
            with tf.device(variable.device):
                variable.assign_sub(total.read_value() * (0.001 / workers))
                total.assign(tf.zeros(total.shape))

    for _ in range(given.steps if is_sync else 1):
        for _ in range(workers if is_sync else workers * given.steps):
            coordinator.schedule(step)
        coordinator.join()
        if is_sync:
            apply()


def all_reduce(given):
    communication = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication)
    with strategy.scope():
        variables = list(new_variables(LAYERS[given.model]))
    tell("training", images_per_step=given.batch * strategy.num_replicas_in_sync)

    def replica():
        found = gradients(variables, given.batch)
        context = tf.distribute.get_replica_context()
        for variable, mean in zip(variables, context.all_reduce("MEAN", found), strict=True):
            context.merge_call(
                lambda s, v, m: s.extended.update(
                    v, lambda one, g: one.assign_sub(0.001 * g), (m,)
                ),
                (variable, mean),
            )

    step = tf.function(lambda: strategy.run(replica))
    for number in range(1, given.steps + 1):
        step()
        tell("step", step=number, own_steps=number)


given = options()
all_reduce(given) if given.way == "ring" else with_ps(given)
