"""How a classifier trains: decided from --strategy and the tasks of the cluster. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trainer.agent.errors import ContractError

AUTO = "auto"
PARAMETER_SERVER = "parameter-server"
GRAPH = "graph"
ALL_REDUCE = "all-reduce"
MIRRORED = "mirrored"
STRATEGIES = (AUTO, PARAMETER_SERVER, GRAPH, ALL_REDUCE, MIRRORED)
UPDATES = ASYNC, SYNC = "async", "sync"
ALL_TASKS = 'style = "all-tasks" in the manifest'


def decide(strategy: str, cluster: Mapping[str, tuple[str, ...]], servers: Collection[str]) -> str:
    """Returns the strategy to use for `strategy`, never `auto`.

    Args:
        cluster: job name to addresses, as in TF_CONFIG.
        servers: names of the tasks that run only a server.
    Raises:
        ContractError: the cluster does not have the tasks that the strategy needs.
    """
    servers_hold = bool(cluster.get("ps"))
    workers_serve = "worker-0" in servers
    if strategy == AUTO:
        if servers_hold:
            return PARAMETER_SERVER if workers_serve else GRAPH
        return ALL_REDUCE if trainers(cluster) > 1 else MIRRORED
    if strategy == PARAMETER_SERVER and not (servers_hold and workers_serve):
        lacks = "its workers run the program themselves" if servers_hold else "it has no ps"
        raise ContractError(
            "--strategy parameter-server needs a chief that coordinates workers and ps, and in"
            f" this cluster {lacks}; set chief = 1 and ps = 1 or more, without {ALL_TASKS}"
        )
    if strategy == GRAPH and workers_serve:
        raise ContractError(
            "--strategy graph runs the program on the chief and on every worker, and here the"
            f" workers only serve; set {ALL_TASKS}"
        )
    if strategy == ALL_REDUCE and (servers_hold or workers_serve):
        raise ContractError(
            "--strategy all-reduce keeps the variables on the workers, and this cluster has ps"
            f" tasks; set ps = 0 and, where there is a chief, {ALL_TASKS}"
        )
    if strategy == MIRRORED and trainers(cluster) > 1:
        raise ContractError(
            f"--strategy mirrored trains on the devices of one task, and here are"
            f" {trainers(cluster)}; use worker = 1 alone, or --strategy all-reduce"
        )
    return strategy


def trainers(cluster: Mapping[str, tuple[str, ...]]) -> int:
    """Returns the number of tasks that compute gradients if all run the program: chief (or master)
    and workers."""
    return sum(len(cluster.get(job, ())) for job in ("chief", "master", "worker"))
