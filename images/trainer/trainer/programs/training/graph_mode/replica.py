"""Decides which replica a task is, what it does in the training, and which devices it uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.agent.errors import ContractError
from trainer.agent.task import Task, role_of
from trainer.programs.training.graph_mode.options import SYNC, GraphOptions


@dataclass(frozen=True)
class DeploymentConfig:
    """`num_replicas` replicas (tasks that train) of `num_clones` clones each.

    With `num_replicas` 1 everything runs in one process, and replica_id, num_ps_tasks and the job
    names are ignored. Above 1, num_ps_tasks must be positive.
    """

    num_clones: int = 1
    """Copies of the model in this replica, each with a batch of its own."""
    clone_on_cpu: bool = False
    """Whether clone i is on the logical CPU device i instead of GPU i; the session needs that many
    devices."""
    replica_id: int = 0
    """Index of this task in the job `worker_job_name`."""
    num_replicas: int = 1
    num_ps_tasks: int = 0
    worker_job_name: str = "worker"
    ps_job_name: str = "ps"

    def __post_init__(self) -> None:
        if self.num_clones < 1:
            raise ContractError(f"num_clones = {self.num_clones}: must be 1 or more")
        if self.num_replicas < 1:
            raise ContractError(f"num_replicas = {self.num_replicas}: must be 1 or more")
        if self.num_replicas > 1 and self.num_ps_tasks < 1:
            raise ContractError(
                f"{self.num_replicas} replicas and num_ps_tasks = {self.num_ps_tasks}: At least 1"
                " ps task is needed for distributed training; add one (`ps = 1` in the manifest),"
                " or train with one replica"
            )
        if self.num_replicas > 1 and not 0 <= self.replica_id < self.num_replicas:
            raise ContractError(
                f"replica_id = {self.replica_id}: must be from 0 to {self.num_replicas - 1}"
                f" (num_replicas = {self.num_replicas})"
            )

    @property
    def distributed(self) -> bool:
        return self.num_replicas > 1

    @property
    def worker_device(self) -> str:
        """The device of this replica's task; '' in a single process."""
        return f"/job:{self.worker_job_name}/task:{self.replica_id}" if self.distributed else ""

    @property
    def ps_device(self) -> str:
        """The job of the variables; '' in a single process."""
        return f"/job:{self.ps_job_name}" if self.distributed else ""

    def clone_scope(self, clone_index: int) -> str:
        """Returns the name scope of a clone's ops; '' if there is one clone."""
        self._check(clone_index)
        return f"clone_{clone_index}" if self.num_clones > 1 else ""

    def clone_device(self, clone_index: int) -> str:
        self._check(clone_index)
        kind = "CPU" if self.clone_on_cpu else "GPU"
        return f"{self.worker_device}/device:{kind}:{clone_index}"

    def inputs_device(self) -> str:
        """The device of the input pipeline: the CPU, which passes batches to the clones."""
        return f"{self.worker_device}/device:CPU:0"

    def optimizer_device(self) -> str:
        """The device on which the clones' gradients are combined; if there is one clone, its
        device."""
        return self.inputs_device() if self.num_clones > 1 else self.clone_device(0)

    def variables_device(self) -> str:
        """The job that holds the variables, or in a single process their device.

        deploy.Placement decides which ps holds which variable.
        """
        if self.distributed:
            return f"{self.ps_device}/device:CPU:0"
        return "/device:CPU:0" if self.num_clones > 1 else self.clone_device(0)

    def caching_device(self) -> str | None:
        """Returns the device on which a replica caches the variables of a step for all its
        clones."""
        return self.inputs_device() if self.distributed else None

    def _check(self, clone_index: int) -> None:
        if not 0 <= clone_index < self.num_clones:
            raise ContractError(
                f"clone {clone_index}: there is no such clone (num_clones = {self.num_clones})"
            )


CHIEF, WORKER, PS = "chief", "worker", "ps"


@dataclass(frozen=True)
class Replica:
    """Replicas are numbered: the chief, then the workers; without a chief, worker 0 leads."""

    number: int
    addresses: Mapping[str, str]
    """Name and address of every replica, by number; the address is empty if a task is alone."""
    ps: Mapping[str, str]
    """Name and address of every ps; empty in a single process."""
    deployment: DeploymentConfig
    gradients_per_round: int
    """Under sync: the number of gradients per update; 0 if there are no rounds."""

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
    """Return this task's replica; raise ContractError if cluster or devices do not allow it.

    Args:
        gpus: the number of GPUs that this task sees.
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
            f"num_clones = {options.num_clones}, but {task.name} sees {gpus}"
            f" GPU{'' if gpus == 1 else 's'}: each clone needs one; give it more"
            " (`gpus_per_worker`), or use --clone-on-cpu"
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
    """Return task name to address of all replicas, in order; no address for a single task."""
    return {
        **addresses_of(task, CHIEF),
        **(addresses_of(task, WORKER) or ({task.name: ""} if not task.cluster else {})),
    }


def addresses_of(task: Task, role: str) -> dict[str, str]:
    """Return task name to address of the tasks of a role."""
    return {
        f"{role}-{index}": host
        for job, hosts in task.cluster.items()
        if role_of(job) == role
        for index, host in enumerate(hosts)
    }


def gradients_per_round(options: GraphOptions, replicas: int) -> int:
    """Return the number of gradients per synchronous update; 0 if updates are asynchronous.

    Raises:
        ContractError: backup workers without sync, or no fewer backup workers than replicas.
    """
    if options.backup_workers and options.update != SYNC:
        raise ContractError(
            f"backup_workers = {options.backup_workers} with update = {options.update}: only"
            " synchronous rounds have backup workers; add --update sync"
        )
    if options.backup_workers >= replicas and options.backup_workers:
        raise ContractError(
            f"backup_workers = {options.backup_workers} of {replicas} replicas: at least one"
            " gradient has to be waited for; use fewer backup workers"
        )
    sync = options.update == SYNC and replicas > 1
    return replicas - options.backup_workers if sync else 0
