"""tf.distribute's strategies, as the classifier uses them."""

from __future__ import annotations

import tensorflow as tf

from trainer.agent.errors import ContractError
from trainer.agent.task import Task
from trainer.programs.classifier import mode
from trainer.programs.classifier.options import Options
from trainer.programs.classifier.train import clones
from trainer.programs.classifier.train.other_trainers import all_here_within

MIN_SHARD_BYTES = 256 << 10


def make(how: str, task: Task, options: Options) -> tf.distribute.Strategy | None:
    """The strategy that `how` (see mode) names; None on a single device."""
    if how == mode.PARAMETER_SERVER:
        return parameter_server(task)
    if how == mode.ALL_REDUCE:
        return all_reduce(task, options)
    return mirrored(task, options)


def clone_devices(how: str, task: Task, options: Options) -> tuple[str, ...]:
    """Where the clones of a task are that trains in one step; () for a plain model."""
    if how == mode.MIRRORED:
        return ()
    job, index = ("worker", 0) if how == mode.PARAMETER_SERVER else (task.job, task.index)
    place = f"/job:{job}/replica:0/task:{index}/"
    gpus, cpus = (
        len([device for device in tf.config.list_logical_devices(kind) if place in device.name])
        for kind in ("GPU", "CPU")
    )
    if how == mode.ALL_REDUCE and gpus:
        return ()  # its strategy has a replica on each of them
    return clones.devices_in_a_task(options, f"{job}-{index}", gpus, cpus)


def parameter_server(task: Task) -> tf.distribute.Strategy:
    """Variables on the ps, large ones split over them; workers compute, the chief coordinates."""
    return tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver(),
        variable_partitioner=tf.distribute.experimental.partitioners.MinSizePartitioner(
            MIN_SHARD_BYTES, max_shards=len(task.cluster["ps"])
        ),
    )


def all_reduce(task: Task, options: Options) -> tf.distribute.Strategy:
    """Every trainer holds all variables; gradients go round between them, each step.

    Blocks until every trainer is there. A worker uses all its GPUs; of simulated devices only one.
    """
    clones.hide_gpus(options)
    gpus = tf.config.get_visible_devices("GPU")
    if options.clones and gpus:
        clones.enough(options, task.name, len(gpus))
        tf.config.set_visible_devices(gpus[: options.clones], "GPU")
    if task.simulate_gpus > 1 and not gpus and not options.clones:
        print(
            f"all-reduce between tasks uses real GPUs or one CPU device a task: of"
            f" {task.simulate_gpus} simulated devices it takes the first",
            flush=True,
        )
    distribute = tf.distribute.experimental
    ways = {"ring": distribute.CommunicationImplementation.RING,
            "nccl": distribute.CommunicationImplementation.NCCL}  # fmt: skip
    with all_here_within(task):
        strategy = tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=distribute.CommunicationOptions(
                implementation=ways[options.communication], timeout_seconds=options.peer_timeout
            )
        )
    devices = strategy.num_replicas_in_sync // mode.trainers(task.cluster)
    if options.batch_size % devices:
        raise ContractError(
            f"--batch-size {options.batch_size} is shared out between the {devices} devices of a"
            f" worker: must be a multiple of {devices}"
        )
    print(
        f"all-reduce between {mode.trainers(task.cluster)} tasks, {devices} device"
        f"{'' if devices == 1 else 's'} each; one step is"
        f" {options.batch_size * mode.trainers(task.cluster)} images",
        flush=True,
    )
    return strategy


def mirrored(task: Task, options: Options) -> tf.distribute.Strategy | None:
    """All devices of this task, or as many as there are clones: its GPUs, or CPU devices, of which
    as many are made as it takes."""
    clones.hide_gpus(options)
    gpus = tf.config.get_visible_devices("GPU")
    count = options.clones
    if count and gpus:
        clones.enough(options, task.name, len(gpus))
    elif count and count > max(task.simulate_gpus, 1):
        cpu = tf.config.list_physical_devices("CPU")[0]
        several = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
        tf.config.set_logical_device_configuration(cpu, several)
    kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)][:count]
    print(f"training on {', '.join(name.partition(':')[2] for name in devices)}", flush=True)
    return tf.distribute.MirroredStrategy(devices) if len(devices) > 1 else None
