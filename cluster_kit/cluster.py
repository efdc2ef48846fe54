"""The resolved cluster: frozen, complete, and valid by construction (see `plan`)."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from cluster_kit.facts import Driver
from cluster_kit.roles import ROLES, Style

OUTPUT = "/output"
"""Where every container has the run's output directory."""
BEACON_PORT_OFFSET = 1
"""The leader's beacon listens on the port after TensorFlow's."""


@dataclass(frozen=True)
class Task:
    """One process in one container; `role` is a name of the table in `roles`.

    `gpus` are device ids as the engine takes them, () if the task sees none; `gpu_names` say the
    same to people; `gpu_memory_mib` is TensorFlow's limit on each, None for no limit.
    `cpus` (cores), `memory` (bytes) and `bandwidth` (bits per second, each way) are limits,
    None for no limit.
    """

    role: str
    index: int
    ip: IPv4Address
    command: tuple[str, ...]
    gpus: tuple[str, ...] = ()
    gpu_names: tuple[str, ...] = ()
    gpu_memory_mib: int | None = None
    cpus: float | None = None
    memory: int | None = None
    bandwidth: int | None = None
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.role}-{self.index}"

    @property
    def serves(self) -> bool:
        """Whether it is a TensorFlow server that waits for work, not a program of its own."""
        return self.command[0] == "serve"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Those of the program that it runs; a server has none."""
        return self.command[2:]


@dataclass(frozen=True)
class Deadlines:
    """Seconds: until every server answers, for the whole job, and for the evaluator after it."""

    start: float
    job: float
    evaluator_grace: float


@dataclass(frozen=True)
class Mount:
    """A read-only directory of the host inside every container."""

    source: str
    target: str


@dataclass(frozen=True)
class Cluster:
    """Everything a compose file says, decided.

    `variant` is that of the kit's own image, None if the manifest names another. `requirements`
    are the lines that `image` has beyond that one, "" for none. `chief_job` is
    what TensorFlow calls the chief's job; the chief's task is `chief-0` either way.
    """

    name: str
    source: str
    image: str
    variant: Literal["cpu", "gpu"] | None
    requirements: str
    user: str
    subnet: IPv4Network
    gateway: IPv4Address
    port: int
    addressing: Literal["ip", "name"]
    style: Style
    chief_job: Literal["chief", "master"]
    data: str
    mounts: tuple[Mount, ...]
    server: Literal["native", "python"]
    deadlines: Deadlines
    retries: int
    gpu_driver: Driver
    gpu_check: bool
    simulate_gpus: int
    tasks: tuple[Task, ...]

    @property
    def project(self) -> str:
        """Compose's project name."""
        return project_of(self.name)

    @property
    def leader(self) -> Task:
        """The task whose end decides the run: the chief, else worker 0."""
        return next(task for task in self.tasks if ROLES[task.role].leads)

    @property
    def sidecars(self) -> tuple[Task, ...]:
        """The tasks that take no part in the training: the evaluator."""
        return tuple(task for task in self.tasks if ROLES[task.role].sidecar)

    def of(self, role: str) -> tuple[Task, ...]:
        """The tasks of the role with this name, by index."""
        return tuple(task for task in self.tasks if task.role == role)

    def restarts(self, task: Task) -> int:
        """How often the engine starts a task again after a failure: never the leader, whose end is
        the verdict."""
        may = ROLES[task.role].restarts and task is not self.leader
        return self.retries if may else 0

    def job(self, role: str) -> str:
        """TensorFlow's job name of a role."""
        row = ROLES[role]
        return self.chief_job if self.chief_job in row.jobs else row.job

    def address(self, task: Task) -> str:
        """`host:port` of a task's TensorFlow server, by IP or by service name as chosen."""
        return f"{self.host(task)}:{self.port}"

    def host(self, task: Task) -> str:
        return str(task.ip) if self.addressing == "ip" else task.name

    @property
    def beacon(self) -> str:
        return f"{self.host(self.leader)}:{self.port + BEACON_PORT_OFFSET}"


def project_of(name: str) -> str:
    """The Compose project of a cluster: prefixed, so that it is never a project of the user's."""
    return f"cluster-kit-{name}"
