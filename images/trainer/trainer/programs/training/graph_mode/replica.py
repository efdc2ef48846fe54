"""Which replica of the training this task is, and what it is allowed to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.agent.errors import ContractError
from trainer.agent.task import Task, role_of
from trainer.programs.training.graph_mode.deployment import DeploymentConfig
from trainer.programs.training.graph_mode.options import SYNC, GraphOptions

CHIEF, WORKER, PS = "chief", "worker", "ps"


@dataclass(frozen=True)
class Replica:
    """Replicas are numbered: the chief, then the workers; without a chief, worker 0 leads."""

    number: int
    addresses: Mapping[str, str]
    """Task name to address of every replica, by number; no address if a task is alone."""
    ps: Mapping[str, str]
    """Task name to address of every ps; empty in a single process."""
    deployment: DeploymentConfig
    gradients_per_round: int
    """Under sync: how many gradients make one update; 0 if there are no rounds."""

    @property
    def count(self) -> int:
        return len(self.addresses)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.addresses)

    @property
    def is_chief(self) -> bool:
        return self.number == 0

    @property
    def chief(self) -> str:
        return self.names[0]

    @property
    def others(self) -> dict[str, str]:
        return {name: host for name, host in self.addresses.items() if name != self.chief}


def replica_of(task: Task, options: GraphOptions, gpus: int) -> Replica:
    """This task's place; ContractError if the cluster, or its devices, cannot do it.

    Args:
        gpus: how many GPUs this task sees.
    """
    if task.role not in (CHIEF, WORKER):
        raise ContractError(
            f"{task.name} runs a graph-mode program, which trains: only chief and workers can;"
            ' a ps is served by the kit (`ps_runs = "server"`)'
        )
    addresses = addresses_of_replicas(task)
    idle = [name for name in addresses if name in task.servers]
    if idle:
        raise ContractError(
            f"{', '.join(idle)} only serve here, but in graph mode every chief and worker runs"
            ' the program: write `style = "all-tasks"` in the manifest'
        )
    ps = addresses_of(task, PS)
    on_cpu = options.clone_on_cpu or not gpus
    if not on_cpu and options.num_clones > gpus:
        raise ContractError(
            f"num_clones = {options.num_clones}, but {task.name} sees {gpus} GPUs: each clone needs"
            " one; give it more (`gpus_per_worker`), or take --clone-on-cpu"
        )
    deployment = DeploymentConfig(
        num_clones=options.num_clones,
        clone_on_cpu=on_cpu,
        replica_id=task.index,
        num_replicas=len(addresses),
        num_ps_tasks=len(ps),
        worker_job_name=task.job,
    )
    return Replica(
        number=list(addresses).index(task.name),
        addresses=addresses,
        ps=ps if deployment.distributed else {},
        deployment=deployment,
        gradients_per_round=gradients_per_round(options, len(addresses)),
    )


def addresses_of_replicas(task: Task) -> dict[str, str]:
    """Task name to address of all that train, by number; no address if the task is alone."""
    return {
        **addresses_of(task, CHIEF),
        **(addresses_of(task, WORKER) or ({task.name: ""} if not task.cluster else {})),
    }


def addresses_of(task: Task, role: str) -> dict[str, str]:
    """Task name to address of the tasks of one role."""
    return {
        f"{role}-{index}": host
        for job, hosts in task.cluster.items()
        if role_of(job) == role
        for index, host in enumerate(hosts)
    }


def gradients_per_round(options: GraphOptions, replicas: int) -> int:
    """Gradients that make one synchronous update; 0 if updates are not synchronous.

    Raises:
        ContractError: backup workers without sync, or as many as there are replicas.
    """
    if options.backup_workers and options.update != SYNC:
        raise ContractError(
            f"backup_workers = {options.backup_workers} with update = {options.update}: only"
            " synchronous rounds have backup workers; add --update sync"
        )
    if options.backup_workers >= replicas and options.backup_workers:
        raise ContractError(
            f"backup_workers = {options.backup_workers} of {replicas} replicas: at least one"
            " gradient has to be waited for; take fewer"
        )
    sync = options.update == SYNC and replicas > 1
    return replicas - options.backup_workers if sync else 0
