"""Moves tensors between bare servers: how fast one connection is, and one ps with two workers.

`cluster-kit measure MANIFEST` runs it. It writes `connection_bps` and `ps_bps`, in bits per second.
"""

import json
import os
import threading
import time

import tensorflow as tf

MIB = 16
SECONDS = 3.0

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.ParameterServerStrategy(resolver)  # connects to all servers
with tf.device("/job:ps/task:0"):
    held = tf.Variable(tf.ones((MIB << 18,)))


def puller(worker):
    @tf.function
    def pull():
        with tf.device(f"/job:worker/task:{worker}"):
            return tf.reduce_max(tf.identity(held))

    return pull


def rate(pulls):
    """Bits per second of all together."""
    moved = []

    def repeat(pull):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            pull()
            moved.append(MIB << 23)

    threads = [threading.Thread(target=repeat, args=(pull,)) for pull in pulls]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(moved) / (time.monotonic() - began)


pulls = [puller(worker) for worker in range(2)]
for pull in pulls:
    pull()  # traces and connects
figures = {"connection_bps": rate(pulls[:1]), "ps_bps": rate(pulls)}
with open(os.environ["CLUSTER_KIT_PROGRESS"], "a", encoding="utf-8") as file:  # noqa: PTH123
    file.write(json.dumps({"time": time.time(), "event": "metrics", **figures}) + "\n")
