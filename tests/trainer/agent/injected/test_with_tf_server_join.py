"""The `join` of a program's server ends the program with the job."""

from __future__ import annotations

import time

import pytest
from connected import wait_for_a_follower
from reading import read_until

pytest.importorskip("tensorflow", reason="TensorFlow, a part of the image, is not installed here")

JOINS = """
import json, os
import tensorflow as tf
spec = json.loads(os.environ["TF_CONFIG"])["cluster"]
server = tf.distribute.Server(spec, job_name="worker", task_index=1)
print("joining", flush=True)
try:
    server.join()
    raise RuntimeError("no line after it is run")
finally:
    print("cleaned up")
"""


def test_join_ends_its_program_with_the_job(run_task, free_port, tmp_path):
    cluster = {"worker": [f"127.0.0.1:{free_port()}" for _ in range(2)]}
    port = free_port()
    beacon = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{port}"}
    (tmp_path / "joins.py").write_text(JOINS)
    (tmp_path / "leads.py").write_text(
        "import pathlib, time\n"
        "while not pathlib.Path(__file__).with_name('end').exists(): time.sleep(0.05)\n"
    )
    follower = run_task("worker-1", cluster, "run", str(tmp_path / "joins.py"), **beacon)
    leader = run_task("worker-0", cluster, "run", str(tmp_path / "leads.py"), **beacon)
    read_until(follower, "joining")
    wait_for_a_follower(port)
    (tmp_path / "end").touch()
    assert leader.wait(10) == 0
    began = time.monotonic()
    assert follower.wait(10) == 0
    assert time.monotonic() - began < 8
    assert "cleaned up" in follower.stdout.read()
