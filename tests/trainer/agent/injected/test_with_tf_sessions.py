"""With TensorFlow: workers in the oldest style take part in short jobs, and programs that handle
preemption have time to save."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest
from reading import read_until

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")

LATE_CHIEF = """
import json, os, time
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
config = json.loads(os.environ["TF_CONFIG"])
index, cluster = config["task"]["index"], tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name="worker", task_index=index)
me = f"/job:worker/task:{index}"
with tf.device(tf.train.replica_device_setter(worker_device=me, cluster=cluster)):
    step = tf.train.get_or_create_global_step()
    count = tf.assign_add(step, 1)
print("waiting", flush=True)
if index == 0:
    time.sleep(4)
own = 0
with tf.train.MonitoredTrainingSession(
    master=server.target, is_chief=index == 0, hooks=[tf.train.StopAtStepHook(last_step=100)],
    config=tf.ConfigProto(device_filters=["/job:ps", me]),
) as session:
    while not session.should_stop():
        session.run(count)
        own += 1
        time.sleep(0.1)
print(f"own steps: {own}", flush=True)
"""


def test_a_worker_that_waits_for_the_chief_takes_part_in_a_short_job(
    run_task, free_port, tmp_path: Path
) -> None:
    cluster = {"worker": [f"127.0.0.1:{free_port()}" for _ in range(2)],
               "ps": [f"127.0.0.1:{free_port()}"]}  # fmt: skip
    shared = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_SERVERS": "ps-0"}
    (tmp_path / "old.py").write_text(LATE_CHIEF)
    run_task("ps-0", cluster, "serve", **shared)
    tasks = [run_task(f"worker-{n}", cluster, "run", str(tmp_path / "old.py"), **shared)
             for n in (0, 1)]  # fmt: skip
    outputs = [task.communicate(timeout=90)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], outputs
    made = [int(re.search(r"own steps: (\d+)", text)[1]) for text in outputs]
    assert min(made) > 10, made


ALONE = """
import json, os
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
cluster = tf.train.ClusterSpec(json.loads(os.environ["TF_CONFIG"])["cluster"])
server = tf.train.Server(cluster, job_name="worker", task_index=0)
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    step = tf.train.get_or_create_global_step()
with tf.train.MonitoredTrainingSession(master=server.target, is_chief=True) as session:
    print("step", session.run(step), flush=True)
"""


def test_a_session_with_device_filters_does_not_need_other_workers(
    run_task, free_port, tmp_path: Path
) -> None:
    cluster = {"worker": [f"127.0.0.1:{free_port()}" for _ in range(2)],
               "ps": [f"127.0.0.1:{free_port()}"]}  # fmt: skip
    shared = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_SERVERS": "ps-0"}
    (tmp_path / "alone.py").write_text(ALONE)
    (tmp_path / "no_server.py").write_text("import time; time.sleep(5)")
    run_task("ps-0", cluster, "serve", **shared)
    run_task("worker-1", cluster, "run", str(tmp_path / "no_server.py"), **shared)
    filters = {"CLUSTER_KIT_DEVICE_FILTERS": "own"}
    task = run_task("worker-0", cluster, "run", str(tmp_path / "alone.py"), **shared, **filters)
    output = task.communicate(timeout=60)[0]
    assert task.returncode == 0 and "step 0" in output, output


PREEMPTED = """
import json, os, pathlib, time
import tensorflow as tf

several = len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]) > 1
if several:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
else:
    strategy = tf.distribute.get_strategy()
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({}))
with strategy.scope():
    step = tf.Variable(0, dtype=tf.int64)
handler = tf.distribute.experimental.PreemptionCheckpointHandler(
    resolver, tf.train.Checkpoint(step=step), "saved")

def train():
    time.sleep(1.5)  # a step that takes longer than a program without a handler gets
    step.assign_add(1)

print("training from", int(step.numpy()), flush=True)
while True:
    handler.run(train)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_that_handles_preemption_has_time_to_save(
    run_task, free_port, tmp_path: Path, workers: int
) -> None:
    (tmp_path / "preempted.py").write_text(PREEMPTED)

    def start() -> tuple[list, int]:
        cluster = {"worker": [f"127.0.0.1:{free_port()}" for _ in range(workers)]}
        shared = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_SERVERS": ""}
        tasks = [
            run_task(f"worker-{n}", cluster, "run", str(tmp_path / "preempted.py"), **shared)
            for n in range(workers)
        ]
        outputs = [read_until(task, "training from")[-1] for task in tasks]
        return tasks, int(outputs[0].split()[-1])

    tasks, first = start()
    assert first == 0
    time.sleep(4)
    for task in tasks:
        task.send_signal(signal.SIGTERM)
    for task in tasks:
        task.communicate(timeout=15)
        assert task.returncode == 143
    assert list((tmp_path / "saved").glob("ckpt-*.index")), "nothing was saved"
    assert start()[1] > 0
