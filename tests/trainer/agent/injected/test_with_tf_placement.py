"""With TensorFlow: reports which ps holds which variable, under a coordinator and in a session of
TensorFlow 1."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from conftest import PYTHON

from trainer.agent.supervisor.child import HOOKS

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

HEAD = """
import os, pathlib, socket, time
import tensorflow as tf
def free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
"""
COORDINATED = """
spec = tf.train.ClusterSpec({"worker": [free()], "ps": [free(), free()], "chief": [free()]})
servers = [tf.distribute.Server(spec, job_name=job, task_index=index)
           for job, index in (("worker", 0), ("ps", 0), ("ps", 1))]
resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
    spec, task_type="chief", task_id=0, rpc_layer="grpc")
strategy = tf.distribute.ParameterServerStrategy(
    resolver, tf.distribute.experimental.partitioners.MinSizePartitioner(1000, max_shards=2))
with strategy.scope():
    tf.Variable(tf.zeros([100, 10]), name="layer/kernel")
    tf.Variable(tf.zeros([10]), name="layer/bias")
"""
IN_SESSION = """
tf1 = tf.compat.v1
tf1.disable_eager_execution()
spec = tf.train.ClusterSpec({"ps": [free()]})
server = tf1.train.Server(spec, job_name="ps", task_index=0)
with tf1.device("/job:ps/task:0"):
    tf1.get_variable("kernel", [100, 10])
tf1.train.get_or_create_global_step()
tf1.train.MonitoredTrainingSession(master=server.target)
"""
TAIL = """
file, until = pathlib.Path(os.environ["CLUSTER_KIT_PROGRESS"]), time.time() + 20
while time.time() < until and not file.read_text():
    time.sleep(0.05)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (COORDINATED, {
            ("layer/kernel/part_0", "ps-0"): 2000, ("layer/kernel/part_1", "ps-1"): 2000,
            ("layer/bias", "ps-0"): 40,
        }),
        (IN_SESSION, {("kernel", "ps-0"): 4000}),
    ],
    ids=["coordinator", "session"],
)  # fmt: skip
def test_which_ps_holds_which_variable(tmp_path, program, told):
    progress = tmp_path / "chief-0.jsonl"
    progress.touch()
    environment = os.environ | {
        "PYTHONPATH": str(HOOKS),
        "CLUSTER_KIT_AFTER_IMPORT": "placement",
        "CLUSTER_KIT_PROGRESS": str(progress),
    }
    done = subprocess.run(
        [PYTHON, "-c", HEAD + program + TAIL],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [event] = map(json.loads, progress.read_text().splitlines())
    found = {(one["name"], one["on"]): one["bytes"] for one in event["variables"]}
    assert event["event"] == "placement" and found == told
