"""The strategies of tf.contrib.distribute, which take numbers of GPUs, made from those of
tf.distribute, which take devices."""

from __future__ import annotations

import tensorflow as tf


def MirroredStrategy(
    devices: list[str] | None = None,
    num_gpus: int | None = None,
    num_gpus_per_worker: int | None = None,
    cross_device_ops: object = None,
    **_: object,
) -> object:
    """Trains on these devices, or on this number of this task's GPUs (without a number: on all)."""
    count = num_gpus_per_worker if num_gpus is None else num_gpus
    if devices is None and count is not None:
        devices = [f"/gpu:{number}" for number in range(count)] or ["/cpu:0"]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops)


def CollectiveAllReduceStrategy(num_gpus_per_worker: int = 0, **_: object) -> object:
    """Trains on all tasks, with all GPUs of each task."""
    return tf.distribute.experimental.MultiWorkerMirroredStrategy()


def ParameterServerStrategy(num_gpus_per_worker: int = 0) -> object:
    """Trains with variables on the ps, and with all GPUs of each task."""
    return tf.distribute.experimental.ParameterServerStrategy()


def AllReduceCrossDeviceOps(all_reduce_alg: str = "nccl", num_packs: int = 1) -> object:
    """The same algorithm, by its class of today."""
    if all_reduce_alg == "nccl":
        return tf.distribute.NcclAllReduce(num_packs)
    return tf.distribute.HierarchicalCopyAllReduce(num_packs)
