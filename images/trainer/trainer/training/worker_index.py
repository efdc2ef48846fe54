"""Which worker runs an op: for input pipelines that workers share out between them."""

from __future__ import annotations

import tensorflow as tf


def worker_index() -> tf.Tensor:
    """The index of the worker that runs this op, 0 outside a cluster; an int64 scalar.

    ParameterServerStrategy tells every pipeline that it is number 0 of 1, and one traced function
    serves all workers, so the op itself has to look where it runs.
    """
    environment = tf.io.read_file("/proc/self/environ")
    index = tf.strings.regex_replace(
        environment, r"(?s)^(?:.*\x00)?CLUSTER_KIT_TASK=worker-(\d+)\x00.*$", r"\1"
    )
    is_worker = tf.strings.regex_full_match(index, r"\d+")
    return tf.strings.to_number(tf.where(is_worker, index, "0"), tf.int64)
