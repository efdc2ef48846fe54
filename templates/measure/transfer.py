"""Moves tensors between bare servers: how fast one connection is, and one ps with two workers.

`cluster-kit measure MANIFEST` runs it. It writes `connection_bps` and `ps_bps`, in bits per second,
and for the CPU of serialisation what ps-0 sent to one worker in two times, of which the kit knows
its CPU: a large tensor (`large_`) and many small ones (`small_`); in `idle_` it sent nothing.
"""

import json
import os
import threading
import time

import tensorflow as tf

MIB, SMALL = 16, 64
SECONDS = 4.0

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.ParameterServerStrategy(resolver)  # connects to all servers
with tf.device("/job:ps/task:0"):
    large = [tf.Variable(tf.ones((MIB << 18,)))]
    small = [tf.Variable(tf.ones((16,))) for _ in range(SMALL)]


def puller(worker, variables):
    @tf.function
    def pull():
        with tf.device(f"/job:worker/task:{worker}"):
            return tf.add_n([tf.reduce_max(tf.identity(one)) for one in variables])

    pull()  # traces and connects
    return pull


def pulls_of(pulls):
    """How many pulls all together made in a second, and when: (pulls/s, begin, end, pulls)."""
    made = []

    def repeat(pull):
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            pull()
            made.append(1)

    threads = [threading.Thread(target=repeat, args=(pull,)) for pull in pulls]
    began, clock = time.time(), time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(made) / (time.monotonic() - clock), began, time.time(), len(made)


def pause():
    """The samples of CPU are a second apart: each time of transfers has two before and after it."""
    time.sleep(2.5)


one, other, many = puller(0, large), puller(1, large), puller(0, small)
pause()
figures = {"idle_begin": time.time()}
pause()
figures["idle_end"] = time.time()
pause()
rate, *times, pulls = pulls_of([one])
figures |= {"connection_bps": rate * (MIB << 23), "large_bytes": pulls * (MIB << 20)}
figures |= dict(zip(("large_begin", "large_end"), times, strict=True))
pause()
rate, *times, pulls = pulls_of([many])
figures |= {"small_tensors": pulls * SMALL}
figures |= dict(zip(("small_begin", "small_end"), times, strict=True))
pause()
figures["ps_bps"] = pulls_of([one, other])[0] * (MIB << 23)
with open(os.environ["CLUSTER_KIT_PROGRESS"], "a", encoding="utf-8") as file:  # noqa: PTH123
    file.write(json.dumps({"time": time.time(), "event": "metrics", **figures}) + "\n")
