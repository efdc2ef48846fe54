"""The resolved cluster: frozen, complete, and valid by construction (see `plan`)."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from cluster_kit.facts import Driver
from cluster_kit.roles import ROLES, Style

OUTPUT = "/output"
"""The directory in every container at which the run's output directory is mounted."""
TRAINER = "/opt/trainer/trainer"
"""The trainer's package in every container: in the kit's image, and mounted into any other."""
OWNER = "owner"
"""As a cluster's user: whoever owns the output directory on the host that runs it."""
BEACON_PORT_OFFSET = 1
"""The leader's beacon listens on the port after TensorFlow's."""


@dataclass(frozen=True)
class PromisedGpu:
    """A GPU or MIG slice that a task must see: `name` for messages.

    `pci` is the bus id of the whole GPU ("" if not known), `uuid` that of a slice is its own.
    """

    name: str
    pci: str
    uuid: str


@dataclass(frozen=True)
class Mount:
    """A file or directory of the host inside containers."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Task:
    """One process in one container.

    `role` is a name of the table in `roles`. `gpus` are device ids for the engine, () if the task
    sees no GPU; `gpus_promised` are the same devices as the task must see them; `gpu_memory_mib` is
    TensorFlow's limit in MiB on each. `cpus` (cores), `memory` (bytes) and `bandwidth` (bits per
    second, each way) are limits. None means no limit. `secrets` are names of variables whose values
    come from the environment of whoever starts it.
    """

    role: str
    index: int
    ip: IPv4Address
    command: tuple[str, ...]
    gpus: tuple[str, ...] = ()
    gpus_promised: tuple[PromisedGpu, ...] = ()
    gpu_memory_mib: int | None = None
    cpus: float | None = None
    memory: int | None = None
    bandwidth: int | None = None
    environment: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    """Those that not every task has."""

    @property
    def name(self) -> str:
        """`worker-0`: also the container's host name and the Compose service."""
        return f"{self.role}-{self.index}"

    @property
    def serves(self) -> bool:
        """Whether the task is a TensorFlow server that waits for work; it then runs no program."""
        return self.command[0] == "serve"

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the program that it runs; () for a server."""
        return self.command[2:]


@dataclass(frozen=True)
class Deadlines:
    """Time limits in seconds: until every server answers, of the job, of the evaluator after it.

    `engine` is for how long the engine may be away, `silent` for how long a task may say nothing
    (0: for ever), `stall` for how long a job may make no progress (0: for ever, None: it depends
    on what the job reports).
    """

    start: float
    job: float
    evaluator_grace: float
    engine: float
    silent: float
    stall: float | None


@dataclass(frozen=True)
class Origin:
    """From what a cluster was made: the command, and what its file has of each source.

    `manifest` and `kit` are 8 hex digits each: hashes of all that the plan took from there.
    `host` are the values that another host, user or folder would change. `portable`: there are
    none, since nothing was taken from the host.
    """

    command: str = ""
    manifest: str = ""
    kit: str = ""
    host: tuple[tuple[str, str], ...] = ()
    portable: bool = False


@dataclass(frozen=True)
class Cluster:
    """A whole cluster: every value that its containers and its network are made from.

    `variant` is the variant of the kit's own image, None if the manifest names another image.
    `tf1`: its program is written for TensorFlow 1. `own_servers`: it starts no server and connects
    to one, so each task that runs it has one of its own.
    `requirements` are the lines of pip requirements that `image` has on top of it, "" if none.
    `chief_job` is TensorFlow's name of the chief's job; the chief's task is `chief-0` either way.
    `user` is `uid:gid`, or OWNER.
    """

    name: str
    source: str
    image: str
    variant: Literal["cpu", "gpu"] | None
    tf1: bool
    own_servers: bool
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
    origin: Origin = Origin()

    @property
    def project(self) -> str:
        """Compose's project name."""
        return project_of(self.name)

    @property
    def mounts_trainer(self) -> bool:
        """Whether the image is any image with TensorFlow, into which the trainer is mounted."""
        return any(mount.target == TRAINER for mount in self.mounts)

    @property
    def leader(self) -> Task:
        """The task whose end decides the run: the chief, else worker 0."""
        return next(task for task in self.tasks if ROLES[task.role].leads)

    @property
    def all_mounts(self) -> tuple[Mount, ...]:
        """What is mounted in any task."""
        own = (mount for task in self.tasks for mount in task.mounts)
        return tuple(dict.fromkeys((*self.mounts, *own)))

    @property
    def sidecars(self) -> tuple[Task, ...]:
        """The tasks outside the training cluster: the evaluator."""
        return tuple(task for task in self.tasks if ROLES[task.role].sidecar)

    def of(self, role: str) -> tuple[Task, ...]:
        """The tasks of the role with this name, by index."""
        return tuple(task for task in self.tasks if task.role == role)

    def restarts(self, task: Task) -> int:
        """How often the engine may start a task again after a failure.

        0 for the leader: its end decides the run.
        """
        restartable = ROLES[task.role].restarts and task is not self.leader
        return self.retries if restartable else 0

    def job(self, role: str) -> str:
        """TensorFlow's job name of a role."""
        row = ROLES[role]
        return self.chief_job if self.chief_job in row.jobs else row.job

    def address(self, task: Task) -> str:
        """`host:port` of a task's TensorFlow server, by IP or by service name as chosen."""
        return f"{self.host(task)}:{self.port}"

    def host(self, task: Task) -> str:
        """A task's IP address or service name, as `addressing` says."""
        return str(task.ip) if self.addressing == "ip" else task.name

    @property
    def beacon(self) -> str:
        """`host:port` of the leader's beacon."""
        return f"{self.host(self.leader)}:{self.port + BEACON_PORT_OFFSET}"


def project_of(name: str) -> str:
    """The Compose project of a cluster; the prefix keeps it apart from the user's projects."""
    return f"cluster-kit-{name}"
