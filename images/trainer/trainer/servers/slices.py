"""A server with MIG slices looks at its own: to the leader, all slices of a GPU look the same."""

from __future__ import annotations

from trainer import outcome
from trainer.injected.gpus import cuda, promise
from trainer.injected.gpus.promise import Gpu
from trainer.outcome import Outcome
from trainer.task import Task


def broken(task: Task) -> Outcome | None:
    """The end of a server that was given other slices than it was promised; None if it is right,
    was promised no slice, or the driver does not say."""
    if not task.gpu_check or not any(gpu.sliced for gpu in task.gpus):
        return None
    sees = [Gpu("a MIG slice", pci, f"MIG-{uuid}") for pci, uuid in cuda.devices() if uuid]
    message = promise.broken(task.name, task.gpus, sees) if sees else ""
    return outcome.because(outcome.GPU_MISSING, message, (task.name,)) if message else None
