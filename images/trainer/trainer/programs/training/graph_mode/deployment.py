"""Where clones, variables, inputs and the optimizer of one replica live: names of devices only."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.agent.errors import ContractError


@dataclass(frozen=True)
class DeploymentConfig:
    """`num_replicas` replicas (tasks that train) of `num_clones` clones each.

    With `num_replicas` 1 everything runs in one process, and replica_id, num_ps_tasks and the job
    names are ignored. Above 1, num_ps_tasks must be positive.
    """

    num_clones: int = 1
    """Copies of the model in this replica, each with a batch of its own."""
    clone_on_cpu: bool = False
    """Clone i on the logical CPU device i instead of GPU i. The session needs as many."""
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
        """This replica's task, '' in a single process."""
        return f"/job:{self.worker_job_name}/task:{self.replica_id}" if self.distributed else ""

    @property
    def ps_device(self) -> str:
        """The job of the variables, '' in a single process."""
        return f"/job:{self.ps_job_name}" if self.distributed else ""

    def clone_scope(self, clone_index: int) -> str:
        """Name scope of a clone's ops; '' if there is one clone."""
        self._check(clone_index)
        return f"clone_{clone_index}" if self.num_clones > 1 else ""

    def clone_device(self, clone_index: int) -> str:
        self._check(clone_index)
        kind = "CPU" if self.clone_on_cpu else "GPU"
        return f"{self.worker_device}/device:{kind}:{clone_index}"

    def inputs_device(self) -> str:
        """The pipeline stays on the CPU, and hands its batches to the clones."""
        return f"{self.worker_device}/device:CPU:0"

    def optimizer_device(self) -> str:
        """Where gradients of several clones meet; a lone clone's stay where they are made."""
        return self.inputs_device() if self.num_clones > 1 else self.clone_device(0)

    def variables_device(self) -> str:
        """The job that holds the variables, or in a single process their device.

        Which ps holds which variable is up to deploy.Placement.
        """
        if self.distributed:
            return f"{self.ps_device}/device:CPU:0"
        return "/device:CPU:0" if self.num_clones > 1 else self.clone_device(0)

    def caching_device(self) -> str | None:
        """Where a replica keeps the variables that it has pulled in a step, for all its clones."""
        return self.inputs_device() if self.distributed else None

    def _check(self, clone_index: int) -> None:
        if not 0 <= clone_index < self.num_clones:
            raise ContractError(
                f"clone {clone_index}: there is no such clone (num_clones = {self.num_clones})"
            )
