"""A server looks at its own GPUs where the leader cannot tell them apart.

To the leader all MIG slices of a GPU look the same; which GPUs a node of a swarm gave, it is not
told.
"""

from __future__ import annotations

from trainer.agent import outcome
from trainer.agent.injected.gpus import cuda, promise
from trainer.agent.injected.gpus.promise import Gpu
from trainer.agent.outcome import Outcome
from trainer.agent.task import Task
from trainer.contract import endings


def broken(task: Task) -> Outcome | None:
    """The end of a server that was given other GPUs or slices than it was promised; None if they
    are right, the leader compares them, or the driver does not say which they are."""
    if not task.gpu_check or not any(_only_here(gpu) for gpu in task.gpus):
        return None
    sliced = any(gpu.sliced for gpu in task.gpus)
    name, prefix = ("a MIG slice", "MIG-") if sliced else ("a GPU", "")
    sees = [Gpu(name, pci, prefix + uuid) for pci, uuid in cuda.devices() if uuid]
    message = promise.broken(task.name, task.gpus, sees) if sees else ""
    return outcome.because(endings.GPU_MISSING, message, (task.name,)) if message else None


def _only_here(gpu: Gpu) -> bool:
    """Whether it is known by its UUID alone: servers show the leader bus ids."""
    return gpu.sliced or bool(gpu.uuid and not gpu.pci)
