"""Strategies of tf.contrib.distribute, which counted GPUs: those of tf.distribute name devices."""

from __future__ import annotations

import tensorflow as tf


def MirroredStrategy(
    devices: list[str] | None = None,
    num_gpus: int | None = None,
    num_gpus_per_worker: int | None = None,
    cross_device_ops: object = None,
    **_: object,
) -> object:
    """On these devices, or on so many GPUs of this task; on all that it has without a number."""
    count = num_gpus_per_worker if num_gpus is None else num_gpus
    if devices is None and count is not None:
        devices = [f"/gpu:{number}" for number in range(count)] or ["/cpu:0"]
    return tf.distribute.MirroredStrategy(devices, cross_device_ops)


def CollectiveAllReduceStrategy(num_gpus_per_worker: int = 0, **_: object) -> object:
    """Between all tasks, with the GPUs that each of them has."""
    return tf.distribute.experimental.MultiWorkerMirroredStrategy()


def ParameterServerStrategy(num_gpus_per_worker: int = 0) -> object:
    """With variables on the ps and the GPUs that each task has."""
    return tf.distribute.experimental.ParameterServerStrategy()


def AllReduceCrossDeviceOps(all_reduce_alg: str = "nccl", num_packs: int = 1) -> object:
    """The same algorithm, by its class of today."""
    if all_reduce_alg == "nccl":
        return tf.distribute.NcclAllReduce(num_packs)
    return tf.distribute.HierarchicalCopyAllReduce(num_packs)
