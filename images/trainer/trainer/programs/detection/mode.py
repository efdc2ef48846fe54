"""Who trains: every task its replica in graph mode, or the chief through served workers."""

from __future__ import annotations

from trainer.errors import ContractError
from trainer.task import Task
from trainer.training.graph_mode.options import SYNC, GraphOptions

AUTO, GRAPH, COORDINATOR = "auto", "graph", "coordinator"
MODES = (AUTO, GRAPH, COORDINATOR)


def decide(mode: str, task: Task, options: GraphOptions) -> str:
    """GRAPH or COORDINATOR; ContractError if the tasks, or the options, do not allow it.

    What graph mode needs, it asks for itself.
    """
    served = [name for name in task.servers if name.startswith("worker-")]
    if mode == AUTO:
        mode = COORDINATOR if served else GRAPH
    if mode == GRAPH:
        return GRAPH
    if not served or not task.cluster.get("ps"):
        raise ContractError(
            "--mode coordinator: the chief sends steps to workers that serve, and there are none;"
            ' write `style = "coordinator"` with a chief and a ps in the manifest, or take'
            " --mode graph"
        )
    for name, value, only in (
        ("update", options.update, options.update == SYNC),
        ("num-clones", options.num_clones, options.num_clones > 1),
        ("backup-workers", options.backup_workers, options.backup_workers > 0),
    ):
        if only:
            raise ContractError(
                f"--{name} {value}: a coordinator applies each worker's gradient as it arrives,"
                ' with one copy of the model each; take --mode graph (`style = "all-tasks"`)'
            )
    return COORDINATOR
