"""GPUs of nodes that this host does not know: so many for each worker, whichever they are. Pure."""

from __future__ import annotations

from cluster_kit.parts import PromisedGpu
from cluster_kit.plan.gpus.assign import GpuGrant
from cluster_kit.plan.gpus.devices import MIB
from cluster_kit.plan.gpus.request import GpuRequest
from cluster_kit.problem import Problem

ANY = "any"
"""The id of a GPU that the engine chooses when it starts the task."""


def of_nodes(request: GpuRequest) -> tuple[dict[str, GpuGrant], list[Problem]]:
    """Returns the grant of each worker, {} if none is asked for, and no problems.

    What is promised has a number and no identity: a worker has to see as many GPUs.
    """
    if request.pool != "require":
        return {}, []
    each = request.each or 1
    memory = None if request.memory is None else request.memory // MIB
    promised = tuple(
        PromisedGpu(f"GPU {n} of {each} of its node", "", "") for n in range(1, each + 1)
    )
    grant = GpuGrant((ANY,) * each, promised, memory)
    return dict.fromkeys(request.pooled, grant), []
