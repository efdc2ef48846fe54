"""With TensorFlow: a program goes on although the end of an iterator takes long."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import PYTHON

from trainer.agent.supervisor.child import HOOKS

if not find_spec("tensorflow"):
    pytest.skip("TensorFlow is in the image, not here", allow_module_level=True)

PROGRAM = """
import threading
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
begun, may_end = threading.Event(), threading.Event()

def second_waits(number):
    if number > 0:
        begun.set()
        may_end.wait()
    return number

def waits(number):
    return tf.py_function(second_waits, [number], tf.int64)

numbers = tf.data.Dataset.range(9).map(waits, num_parallel_calls=2)
for kind in numbers, strategy.experimental_distribute_dataset(numbers.repeat()):
    begun.clear()
    may_end.clear()
    iterator = iter(kind)
    next(iterator)
    begun.wait()
    timer = threading.Timer(40, may_end.set)
    timer.start()
    del iterator
    print("waited" if may_end.is_set() else "went on", flush=True)
    timer.cancel()
    may_end.set()
"""


def test_a_program_does_not_wait_for_the_end_of_its_iterators(run_task, free_port, tmp_path: Path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    cluster = {"worker": [f"127.0.0.1:{free_port()}"]}
    task = run_task("worker-0", cluster, "run", str(path))
    found = task.communicate(timeout=300)[0]
    assert task.returncode == 0, found
    ends = [line for line in found.splitlines() if line in ("waited", "went on")]
    assert ends == ["went on", "went on"], found


ON_SERVERS = """
import os, socket
import tensorflow as tf

def free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"

spec = tf.train.ClusterSpec({"worker": [free()], "ps": [free()], "chief": [free()]})
servers = [tf.distribute.Server(spec, job_name=job, task_index=0) for job in ("worker", "ps")]
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.SimpleClusterResolver(
        spec, task_type="chief", task_id=0, rpc_layer="grpc"))
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
untuned = []
with_options = tf.data.Dataset.with_options

def noted(self, options, name=None):
    if options.autotune.enabled is False:
        untuned.append(self._variant_tensor.device)
    return with_options(self, options, name)

tf.data.Dataset.with_options = noted

def numbers(_context=None):
    return tf.data.Dataset.range(9).batch(3)

distributed = strategy.distribute_datasets_from_function
for name, make in (("plain", numbers), ("distributed", lambda: distributed(numbers))):
    untuned.clear()
    batches = iter(coordinator.create_per_worker_dataset(make))
    first = coordinator.schedule(tf.function(lambda found: next(found)), (batches,))
    coordinator.join()
    print(name, first.fetch().tolist(), {device.split("/")[1] for device in untuned})
untuned.clear()
print("here", [batch.numpy().tolist() for batch in numbers()], untuned, flush=True)
os._exit(0)
"""


def test_a_data_set_on_a_server_is_not_tuned_and_one_here_is():
    environment = os.environ | {
        "PYTHONPATH": str(HOOKS),
        "CLUSTER_KIT_AFTER_IMPORT": "iterators",
    }
    done = subprocess.run(
        [PYTHON, "-c", ON_SERVERS],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "plain [0, 1, 2] {'job:worker'}",
        "distributed [0, 1, 2] {'job:worker'}",
        "here [[0, 1, 2], [3, 4, 5], [6, 7, 8]] []",
    ], done.stdout
