"""With TensorFlow: counts scheduled closures, and the closures that each worker has finished."""

from __future__ import annotations

import inspect
import json
import os
import subprocess

import pytest
from conftest import PYTHON

from trainer.agent.supervisor.child import HOOKS

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

PROGRAM = """
import json, os, pathlib, socket, time
import tensorflow as tf
def free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
spec = tf.train.ClusterSpec({"worker": [free(), free()], "ps": [free()], "chief": [free()]})
servers = [tf.distribute.Server(spec, job_name=job, task_index=index)
           for job, index in (("worker", 0), ("worker", 1), ("ps", 0))]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    spec, task_type="chief", task_id=0, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
batches = iter(coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.range(1000)))
step = tf.function(lambda it: next(it))
several = tf.function(lambda it, steps: next(it))
several.cluster_kit_steps = lambda it, steps: steps
for _ in range(30):
    coordinator.schedule(step, (batches,))
for steps in (3, 7):
    coordinator.schedule(several, args=(batches, tf.constant(steps)))
coordinator.join()
step.cluster_kit_steps = lambda: 5  # with wrong parameters: it counts as 1
coordinator.schedule(step, (batches,))
coordinator.join()
def train_function(iterator, steps_per_execution):
    return next(iterator)
class Number:
    reads = 0
    def __int__(self):
        Number.reads += 1
        return 10
train, number = tf.function(train_function), Number()
for _ in range(2):
    coordinator.schedule(train, args=(batches, number))
coordinator.join()
assert Number.reads == 1, Number.reads  # it is on a ps
def make_test_function():
    def test_function(iterator):
        return next(iterator)
    return tf.function(test_function)
score = make_test_function()
for _ in range(9):
    coordinator.schedule(score, args=(batches,))
coordinator.join()
counts, until = pathlib.Path(os.environ["CLUSTER_KIT_MAILBOX"], "closures"), time.time() + 20
while time.time() < until:
    if counts.exists() and sum(json.loads(counts.read_text())["finished"].values()) >= 70:
        break
    time.sleep(0.05)
print(counts.read_text())
@tf.function
def wrong():
    tf.debugging.assert_equal(tf.random.uniform(()), 2.0)
coordinator.schedule(wrong)
try:
    coordinator.join()
except tf.errors.InvalidArgumentError:
    pass
until = time.time() + 20
while not json.loads(counts.read_text())["failed"] and time.time() < until:
    time.sleep(0.05)
print(counts.read_text())
os._exit(0)
"""


@pytest.mark.parametrize(
    ("hooks", "tasks"),
    [("closures", {"worker-0", "worker-1"}), ("closures,refuse", {"chief-0"})],
    ids=["servers of other tasks", "servers in the program"],
)
def test_closures_or_their_steps_that_each_worker_has_finished(tmp_path, hooks, tasks):
    environment = os.environ | {
        "PYTHONPATH": str(HOOKS),
        "CLUSTER_KIT_AFTER_IMPORT": hooks,
        "CLUSTER_KIT_MAILBOX": str(tmp_path),
        "CLUSTER_KIT_TASK": "chief-0",
    }
    done = subprocess.run(
        [PYTHON, "-c", PROGRAM],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    output, with_failure = map(json.loads, done.stdout.splitlines()[-2:])
    counts = output["finished"]
    assert (output["scheduled"], output["joined"]) == (70, 70)
    assert sum(counts.values()) == 70
    assert sum(output["scored"].values()) == 9
    assert counts.keys() <= tasks and output["scored"].keys() <= tasks
    assert (output["failed"], with_failure["failed"]) == (0, 1)


def test_the_function_of_keras_has_the_parameters_by_which_it_is_known():
    keras = pytest.importorskip(
        "tf_keras", reason="tf_keras, a part of the image, is not installed"
    )
    source = inspect.getsource(keras.Model.make_train_function)
    assert "def train_function(iterator, steps_per_execution):" in source
    assert "def test_function(iterator):" in inspect.getsource(keras.Model.make_test_function)
