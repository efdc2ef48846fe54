"""The hooks end programs on which real TensorFlow would hang, with a message."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

ALONE = {"chief": ["127.0.0.1:1"]}
WITH_EVALUATOR = """
import json, os
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:3"],
                "evaluator": ["127.0.0.1:4"]},
    "task": {"type": "chief", "index": 0}})
import tensorflow as tf
"""
WITH_PS = WITH_EVALUATOR.replace(
    """,
                "evaluator": ["127.0.0.1:4"]""",
    "",
)
IN_ONE_PROCESS = """
import socket
import tensorflow as tf
def free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
spec = tf.train.ClusterSpec({"worker": [free()], "ps": [free()], "chief": [free()]})
servers = [tf.distribute.Server(spec, job_name=job, task_index=0) for job in ("worker", "ps")]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    spec, task_type="chief", task_id=0, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(resolver)
"""
PROGRAMS = {
    "an evaluator in the spec, ps": (
        WITH_EVALUATOR
        + "tf.distribute.ParameterServerStrategy("
        + "tf.distribute.cluster_resolver.TFConfigClusterResolver())",
        "ParameterServerStrategy would wait for it forever",
    ),
    "an evaluator in the spec, all-reduce": (
        WITH_EVALUATOR + "tf.distribute.MultiWorkerMirroredStrategy()",
        "MultiWorkerMirroredStrategy would wait for it forever",
    ),
    "ps in the spec, all-reduce": (
        WITH_PS + "tf.distribute.MultiWorkerMirroredStrategy()",
        "the cluster spec has 1 ps: MultiWorkerMirroredStrategy would wait forever",
    ),
    "ps in the spec, all-reduce by its older name": (
        WITH_PS
        + "tf.distribute.experimental.MultiWorkerMirroredStrategy("
        + "cluster_resolver=tf.distribute.cluster_resolver.TFConfigClusterResolver())",
        'style "all-tasks", ps 0',
    ),
    "ps in the spec, all-reduce of TensorFlow 1's API": (
        WITH_PS + "tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy()",
        "the cluster spec has 1 ps: MultiWorkerMirroredStrategy would wait forever",
    ),
    "ParameterServerStrategy in a worker": (
        WITH_PS.replace('"type": "chief"', '"type": "worker"')
        + "tf.distribute.ParameterServerStrategy("
        + "tf.distribute.cluster_resolver.TFConfigClusterResolver())",
        "ParameterServerStrategy in worker-0: only the chief makes it",
    ),
    "a generator in a dataset function": (
        IN_ONE_PROCESS
        + "coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)\n"
        + "coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.from_generator("
        + "lambda: iter([1.0]), output_signature=tf.TensorSpec((), tf.float32)))",
        "a Python generator inside a dataset function",
    ),
    "Keras 3 under a strategy that it does not know": (
        IN_ONE_PROCESS
        + "import keras, numpy\n"
        + "with strategy.scope():\n"
        + "    model = keras.Sequential([keras.layers.Dense(1)])\n"
        + "    model.compile(loss='mse')\n"
        + "    model.fit(numpy.ones((4, 1)), numpy.ones((4, 1)))",
        "Keras 3 cannot fit under ParameterServerStrategy. Use tf_keras, which is Keras 2",
    ),
}


@pytest.fixture
def printed_by(run_task, tmp_path):
    """Returns a function that runs a program to its end, and returns what it prints."""

    def run(text, code=0):
        (tmp_path / "program.py").write_text(text)
        task = run_task("chief-0", ALONE, "run", str(tmp_path / "program.py"))
        ended, printed = task.wait(60), task.stdout.read()
        assert ended == code, printed
        return printed

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_is_refused_with_a_fix(printed_by, name):
    text, says = PROGRAMS[name]
    printed = printed_by(text, code=1)
    assert says in printed


def test_all_reduce_with_ps_is_not_refused_in_graph_mode(printed_by):
    printed = printed_by(
        WITH_PS
        + "with tf.Graph().as_default():\n"
        + "    made = tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy()\n"
        + "    print(made.extended._num_workers, 'workers')\n"
    )
    assert "2 workers" in printed


def test_all_reduce_in_an_evaluator_ignores_the_training_cluster(printed_by):
    """This is also so with the TF_CONFIG of a TensorFlow that has Estimators."""
    printed = printed_by(
        WITH_PS.replace('"type": "chief"', '"type": "evaluator"')
        + "made = tf.distribute.MultiWorkerMirroredStrategy()\n"
        + "again = tf.distribute.MultiWorkerMirroredStrategy(\n"
        + "    tf.distribute.cluster_resolver.TFConfigClusterResolver())\n"
        + "print(made.num_replicas_in_sync + again.num_replicas_in_sync, 'replicas')\n"
    )
    assert "2 replicas" in printed


def test_programs_that_work_are_not_refused(printed_by):
    """tf_keras under the same strategy, a generator outside of dataset functions, Keras 3 alone."""
    printed = printed_by(
        IN_ONE_PROCESS
        + "import keras, numpy\n"
        + "alone = keras.Sequential([keras.layers.Dense(1)])\n"
        + "alone.compile(loss='mse')\n"
        + "alone.fit(numpy.ones((4, 1)), numpy.ones((4, 1)), verbose=0)\n"
        + "one = tf.data.Dataset.from_generator(lambda: iter([2.0]),"
        + " output_signature=tf.TensorSpec((), tf.float32))\n"
        + "coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)\n"
        + "def dataset():\n"
        + "    return tf.data.Dataset.from_tensors(next(iter([3.0]))).repeat()\n"
        + "batches = iter(coordinator.create_per_worker_dataset(dataset))\n"
        + "step = tf.function(lambda it: next(it))\n"
        + "print(coordinator.schedule(step, (batches,)).fetch() + next(iter(one)).numpy())\n"
    )
    assert "5.0" in printed


ESTIMATORS = """
class Config:
    task_type, train_distribute = "chief", None
    def __init__(self, address):
        self.master = "grpc://" + address
        import tensorflow as tf
        self.cluster_spec = tf.train.ClusterSpec({"chief": [address], "ps": ["127.0.0.1:1"]})

class EstimatorV2:
    def __init__(self, address):
        self.config = Config(address)
    def train(self, steps):
        return f"{steps} steps"

Estimator = type("Estimator", (), dict(vars(EstimatorV2)))
"""
TRAINS = """
import tensorflow as tf
from tensorflow_estimator.python.estimator import estimator
"""


@pytest.fixture
def estimators(tmp_path):
    """A stand-in for the module of Estimators, which the newest TensorFlow does not have."""
    package = tmp_path / "tensorflow_estimator" / "python" / "estimator"
    package.mkdir(parents=True)
    (package / "estimator.py").write_text(ESTIMATORS)


@pytest.mark.parametrize("name", ["Estimator", "EstimatorV2"])
def test_an_estimator_that_would_wait_for_its_server_is_refused(printed_by, estimators, name):
    printed = printed_by(TRAINS + f"estimator.{name}('127.0.0.1:2').train(steps=3)", code=1)
    assert "no server answers on 127.0.0.1:2: Estimator.train starts none" in printed


def test_an_estimator_with_a_server_of_its_program_trains(printed_by, estimators):
    printed = printed_by(
        TRAINS
        + "server = tf.distribute.Server.create_local_server()\n"
        + "address = server.target.removeprefix('grpc://')\n"
        + "print(estimator.Estimator(address).train(3))\n"
    )
    assert "3 steps" in printed
