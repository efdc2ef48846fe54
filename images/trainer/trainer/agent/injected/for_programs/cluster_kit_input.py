"""Returns a worker's own part of the data, under every strategy, for any program:

    from cluster_kit_input import shard
    files = shard(tf.data.Dataset.list_files("/data/*.tfrecord", shuffle=False))

Or lets data workers prepare the data, if the cluster has any (`data_worker = 2`):

    from cluster_kit_input import distribute
    batches = distribute(batches.repeat(), job_name="training")

ParameterServerStrategy tells every input pipeline that it is number 0 of 1, so a dataset function
that uses `input_pipeline_id` gives all data to each worker. This module uses TF_CONFIG instead.
Outside of the kit's image, copy this file into the program's directory.
"""

from __future__ import annotations

import json
import os
import warnings

import tensorflow as tf

TRAINERS = ("chief", "master", "worker")
"""Jobs that train, in the order in which their tasks are numbered."""


@tf.autograph.experimental.do_not_convert
def shard(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """This worker's part of `dataset`: parts are disjoint, and together they are all of it.

    Every worker must have made the same dataset, in the same order: shard before you shuffle, and
    shard a list of files before you read them. Outside of a cluster, and in an evaluator, the part
    is the whole. TensorFlow does not shard the result again.
    """
    count = num_workers()
    if count == 1:
        return dataset
    if _coordinates():
        # On the worker, in each iteration: the dataset itself may have been made on the chief.
        index = tf.data.Dataset.from_tensors(0).map(lambda _: worker_index())
        part = index.flat_map(lambda mine: dataset.shard(count, mine))
    else:
        part = dataset.shard(count, _own_index())
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return part.with_options(options)


def data_service() -> str:
    """The address of tf.data service's dispatcher, `grpc://host:port`; "" if there are no data
    workers."""
    return os.environ.get("CLUSTER_KIT_DATA_SERVICE", "")


@tf.autograph.experimental.do_not_convert
def distribute(
    dataset: tf.data.Dataset, sharding: object = None, job_name: str | None = None
) -> tf.data.Dataset:
    """`dataset` as the data workers make it; unchanged without data workers, and in an evaluator.

    Do not use `shard` on it: data workers make it, and they are no workers of the strategy.

    Args:
        sharding: how data workers divide the data, one of tf.data.experimental.service's
            ShardingPolicy; DYNAMIC if not given: together they make each element once.
        job_name: iterators with the same name share the elements, each of which goes to one of
            them. A program that was started again goes on with those that are left, so `dataset`
            should be endless (`repeat()`). Without a name each iterator gets all elements.
    """
    _, role, _ = _tf_config()
    if not data_service() or role == "evaluator":
        return dataset
    service = tf.data.experimental.service
    how = service.ShardingPolicy.DYNAMIC if sharding is None else sharding
    with warnings.catch_warnings():
        # In a dataset function TensorFlow tells that options are no longer known as values.
        warnings.filterwarnings("ignore", message="To make it possible to preserve tf.data options")
        return dataset.apply(service.distribute(how, data_service(), job_name=job_name))


def num_workers() -> int:
    """The number of tasks that share the data: the workers of a coordinator, else all tasks that
    train."""
    cluster, role, _ = _tf_config()
    if role == "evaluator":
        return 1
    jobs = ("worker",) if _coordinates() else TRAINERS
    return max(1, sum(len(cluster.get(job, ())) for job in jobs))


@tf.autograph.experimental.do_not_convert
def worker_index() -> tf.Tensor:
    """The number of the worker that runs this op, 0 to num_workers() - 1; an int64 scalar.

    It is 0 outside of a cluster, in an evaluator, and for ops that a coordinator runs itself. Call
    it inside of the dataset function: one traced function serves all workers of a coordinator, so
    the op finds the index where it runs.
    """
    return _index_where_it_runs() if _coordinates() else tf.constant(_own_index(), tf.int64)


def _tf_config() -> tuple[dict[str, list[str]], str, int]:
    """TF_CONFIG's cluster, this task's job and its index; ({}, "", 0) without a cluster."""
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    task = config.get("task", {})
    return config.get("cluster", {}), task.get("type", ""), int(task.get("index", 0))


def _own_index() -> int:
    """This task's number among all that train: the chief is the first."""
    cluster, role, index = _tf_config()
    if role not in TRAINERS:
        return 0
    return index + sum(len(cluster.get(job, ())) for job in TRAINERS[: TRAINERS.index(role)])


def _coordinates() -> bool:
    """Whether this process sends steps to workers that serve, instead of training itself."""
    if "worker-0" in os.environ.get("CLUSTER_KIT_SERVERS", "").split(","):
        return True
    from tensorflow.python.eager import context

    connected = context.get_server_def()  # by ParameterServerStrategy; others leave it None
    return connected is not None and any(job.name == "ps" for job in connected.cluster.job)


def _index_where_it_runs() -> tf.Tensor:
    """The index in the TF_CONFIG of the process in which this op runs."""
    variables = tf.strings.split(tf.io.read_file("/proc/self/environ"), "\0")
    is_config = tf.strings.regex_full_match(variables, r"(?s)TF_CONFIG=.*")
    config = tf.strings.reduce_join(tf.boolean_mask(variables, is_config))
    task = tf.strings.regex_replace(config, r'(?s)^.*"task"\s*:\s*\{([^{}]*)\}.*$', r"\1")
    job = tf.strings.regex_replace(task, r'(?s)^.*"type"\s*:\s*"(\w+)".*$', r"\1")
    index = tf.strings.regex_replace(task, r'(?s)^.*"index"\s*:\s*"?(\d+).*$', r"\1")
    is_worker = tf.equal(job, "worker")
    known = tf.debugging.Assert(
        is_worker | tf.equal(job, "chief"),
        ["the index of this worker is unknown: its process has no TF_CONFIG of a worker"],
    )
    with tf.control_dependencies([known] if known is not None else []):
        return tf.strings.to_number(tf.where(is_worker, index, "0"), tf.int64)
