"""The resolved cluster: frozen, complete, and valid by construction (see `plan`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from typing import Any, Literal

from cluster_kit.contract.times import BEACON_PORT_OFFSET
from cluster_kit.facts import Driver
from cluster_kit.platform_table import DEFAULT
from cluster_kit.roles import ROLES, Style

OWN_IMAGE = "trainer"
"""Stands for the image that the kit builds; any other image is the user's own."""
RESERVED = re.compile(
    r"TF_CONFIG|(CUDA|NVIDIA)_VISIBLE_DEVICES"
    r"|CLUSTER_KIT_(?!(COUNT_STEPS|DEVICE_FILTERS|SCHEDULING)$)\w+"
)
"""Environment variables that the kit itself sets for a task."""


def project_of(cluster: str) -> str:
    """The name of a cluster for its engine; the prefix keeps it apart from the user's projects."""
    return f"cluster-kit-{cluster}"


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
class Fetch:
    """A program of the host that fills `directory` with data before the first start.

    `secrets` are names of variables that it gets from the caller's environment.
    """

    script: str
    args: tuple[str, ...]
    secrets: tuple[str, ...]
    directory: str


@dataclass(frozen=True)
class Dockerfile:
    """The paths of a user's Dockerfile and of the directory that it is built from.

    `named` is its path in the manifest.
    """

    named: str
    file: str
    context: str


@dataclass(frozen=True)
class Port:
    """A port of a container that is published on a port of the host, of LOOPBACK only."""

    host: int
    container: int


@dataclass(frozen=True)
class Bounds:
    """How much of the host a container can use at most; None: the engine's own limit.

    `pids` are processes and threads, `tmp` bytes of /tmp, `logs` bytes of its output.
    """

    pids: int | None = None
    tmp: int | None = None
    logs: int | None = None


@dataclass(frozen=True)
class Ready:
    """When a service is ready: a port answers, a page of it does (`path`), or a command ends
    with 0."""

    port: int = 0
    path: str = ""
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sidecar:
    """A service that runs with the tasks, on their network, and ends with the job.

    `entrypoint` is None for the image's own; `user` is "" for the image's own.
    `secrets` are names of variables that it gets from the caller's environment. The job fails if
    one that is `required` crashes. Programs wait until it is `ready`; if that is None, they do not
    wait.
    """

    name: str
    ip: IPv4Address
    image: str
    entrypoint: tuple[str, ...] | None
    command: tuple[str, ...]
    user: str
    environment: tuple[tuple[str, str], ...]
    secrets: tuple[str, ...]
    mounts: tuple[Mount, ...]
    ports: tuple[Port, ...]
    required: bool
    ready: Ready | None = None


@dataclass(frozen=True)
class Ulimit:
    """A limit of the kernel for each process of a container; -1 means no limit."""

    name: str
    soft: int
    hard: int


@dataclass(frozen=True)
class Deadlines:
    """Time limits in seconds: until every server answers, of the job, of the evaluator after it.

    `engine` is how long the engine may be unreachable, `silent` how long a task may send no
    heartbeat (0: forever), `stall` how long a job may make no progress (0: forever, None: it
    depends on what the job reports).
    """

    start: float
    job: float
    evaluator_grace: float
    engine: float
    silent: float
    stall: float | None


@dataclass(frozen=True)
class SuccessRule:
    """Who decides that the job succeeded, if not its leader.

    `needed` is how many tasks of each role must end well, `text` the manifest's value. `evaluator`:
    whether the evaluator must end well, too.
    """

    text: str
    needed: tuple[tuple[str, int], ...]
    evaluator: bool = True


@dataclass(frozen=True)
class RestartCodes:
    """Exit codes of programs, as ranges with both ends: after `permanent` ones a program is not
    started again, after `retryable` ones it is, even if it is the leader's."""

    permanent: tuple[tuple[int, int], ...] = ()
    retryable: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ProfileAt:
    """A trace of all tasks, taken for `seconds` as soon as a task reports `at_step`."""

    at_step: int
    seconds: float


@dataclass(frozen=True)
class Origin:
    """The sources of a cluster: the command, and the values in its file from each source.

    `manifest` and `kit` are hashes (8 hex digits) of all values that the plan took from them.
    `host` are the values that would differ on another host, for another user or in another folder.
    `portable`: whether there are none, since the plan used no value of the host.
    """

    command: str = ""
    manifest: str = ""
    kit: str = ""
    host: tuple[tuple[str, str], ...] = ()
    portable: bool = False


OUTPUT = "/output"
"""The directory in every container at which the run's output directory is mounted."""
TRAINER = "/opt/trainer/trainer"
"""The trainer's package in every container: in the kit's image, and mounted into any other."""
LOOPBACK = "127.0.0.1"
"""The host's address at which ports are published."""
SECRETS = "/run/secrets"
"""The directory in every container that has the secrets, each as a file."""
OWNER = "owner"
"""A value of a cluster's user: the owner of the output directory on the host that runs it."""


@dataclass(frozen=True)
class Task:
    """One process in one container.

    `role` is a name of the table in `roles`. `gpus` are device ids for the engine, () if the task
    sees none; `gpus_promised` are the same devices as the task must see them; `gpu_memory_mib` is
    TensorFlow's limit in MiB on each. `cpus` (cores), `memory` (bytes) and `bandwidth` (bits/s
    each way) are limits, None for none. `secrets` are names of variables of the caller's
    environment.
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
    env_file: str = ""  # the path of a file with further variables
    secret_files: tuple[tuple[str, str], ...] = ()
    """(file in SECRETS, variable of the caller whose value it has)."""
    shm_size: int | None = None  # bytes of shared memory, None for the usual ones
    ulimits: tuple[Ulimit, ...] = ()
    ports: tuple[Port, ...] = ()
    nodes: tuple[str, ...] = ()
    """Constraints on the node that it runs on: `node.labels.disk == ssd`."""
    host: str = ""
    """The name by which other tasks find it; "" means its own name."""
    debug: int = 0
    """The port of LOOPBACK on which its program waits for a debugger, 0 if it does not."""

    @property
    def name(self) -> str:
        """`worker-0`: also the container's host name."""
        return f"{self.role}-{self.index}"

    @property
    def from_caller(self) -> tuple[str, ...]:
        """Names of all variables whose values come from the caller's environment, sorted."""
        return tuple(sorted({*self.secrets, *(variable for _, variable in self.secret_files)}))

    @property
    def serves(self) -> bool:
        """Whether the task is a TensorFlow server that waits for work; it then runs no program."""
        return self.command[0] == "serve"

    @property
    def feeds(self) -> bool:
        """Whether the task is one of tf.data service's."""
        return ROLES[self.role].feeds

    @property
    def runs_program(self) -> bool:
        """Whether the task runs the program; all others are servers of some kind."""
        return self.command[0] == "run"

    @property
    def program(self) -> str:
        """The path, in the container, or the built-in name of the program that it runs; "" for a
        server."""
        return self.command[1] if self.runs_program else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the program that it runs; () for a server."""
        return self.command[2:]


@dataclass(frozen=True)
class Cluster:
    """A whole cluster: every value that its containers and its network are made from.

    `variant` is that of the kit's own image, None for another image. `tf1`: its program is written
    for TensorFlow 1. `own_servers`: it starts no server and connects to one, so each task that runs
    it has one. `tensorflow` is the version instead of the kit's own, `requirements` are lines of
    pip requirements on top of `image`, "" for none, and `requirement_places` the place of each in
    the user's file. `user` is `uid:gid` or OWNER.
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
    tf1: bool = False  # fields with defaults are missing in runs of earlier kits
    own_servers: bool = False
    requirement_places: tuple[str, ...] = ()
    tensorflow: str = ""
    origin: Origin = field(default_factory=Origin)
    internal: bool = False  # the network leads nowhere else
    isolated: bool = False  # the host has no address in the internal network
    mtu: int | None = None  # of the network, in bytes; None for the engine's own
    fetch: Fetch | None = None  # fetches the data if it does not exist yet
    dockerfile: Dockerfile | None = None  # the source of `image` if it is the user's
    sidecars: tuple[Sidecar, ...] = ()
    bounds: Bounds = field(default_factory=Bounds)
    profile: ProfileAt | None = None
    engine: str = DEFAULT  # the name of its platform, as in the manifest
    one_host: bool = True  # all tasks run on this host, each at its own address
    host_network: bool = False  # tasks use the network of their nodes
    encrypted: bool = False  # data between tasks on different nodes
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The platform's settings: plain data that only the platform reads."""
    tensorboard: bool = False  # whether `up` shows the run in it
    success: SuccessRule | None = None  # who decides, if not the leader
    restart: RestartCodes = field(default_factory=RestartCodes)

    @property
    def data_set(self) -> str:
        """What `data` names: the directory of the host, or the name of a data set of the image."""
        of_host = (mount.source for mount in self.mounts if mount.target == self.data)
        return next(of_host, self.data.rpartition("/")[2])

    @property
    def image_is_built(self) -> bool:
        """Whether the kit builds the image, so that no registry has it."""
        return self.variant is not None or self.dockerfile is not None

    @property
    def project(self) -> str:
        """The name under which an engine keeps its network and services."""
        return project_of(self.name)

    @property
    def mounts_trainer(self) -> bool:
        """Whether the image is any image with TensorFlow, into which the trainer is mounted."""
        return any(mount.target == TRAINER for mount in self.mounts)

    @property
    def leader(self) -> Task:
        """The task whose end decides the run: the chief, else worker 0.

        If `success` lets others decide, the leader waits for them.
        """
        return next(task for task in self.tasks if ROLES[task.role].leads)

    @property
    def ports(self) -> tuple[tuple[str, Port], ...]:
        """Every published port, with the name of its task or sidecar."""
        of_tasks = [(task.name, port) for task in self.tasks for port in task.ports]
        return (*of_tasks, *((one.name, port) for one in self.sidecars for port in one.ports))

    @property
    def from_caller(self) -> tuple[str, ...]:
        """Names of all variables whose values come from the caller's environment, sorted."""
        names = {name for task in self.tasks for name in task.from_caller}
        return tuple(sorted(names.union(*(one.secrets for one in self.sidecars))))

    @property
    def all_mounts(self) -> tuple[Mount, ...]:
        """All mounts of all tasks."""
        of_tasks = (mount for task in self.tasks for mount in task.mounts)
        return tuple(dict.fromkeys((*self.mounts, *of_tasks)))

    @property
    def evaluators(self) -> tuple[Task, ...]:
        """The tasks that score the training: the evaluator."""
        return tuple(task for task in self.tasks if ROLES[task.role].evaluates)

    @property
    def data_tasks(self) -> tuple[Task, ...]:
        """The tasks of tf.data service, the dispatcher first; () without data workers."""
        return tuple(task for task in self.tasks if task.feeds)

    @property
    def data_service(self) -> str:
        """`grpc://host:port` of tf.data service's dispatcher; "" without data workers."""
        return next((f"grpc://{self.address(task)}" for task in self.data_tasks), "")

    def of(self, role: str) -> tuple[Task, ...]:
        """The tasks of the role with this name, by index."""
        return tuple(task for task in self.tasks if task.role == role)

    def restarts(self, task: Task) -> int:
        """How often the engine may restart a task; 0 for the leader: its end ends the job."""
        restartable = ROLES[task.role].restarts and task is not self.leader
        return self.retries if restartable else 0

    def job(self, role: str) -> str:
        """TensorFlow's job name of a role."""
        row = ROLES[role]
        return self.chief_job if self.chief_job in row.jobs else row.job

    def address(self, task: Task) -> str:
        """`host:port` of a task's TensorFlow server, by IP or by service name as chosen."""
        return f"{self.host(task)}:{self.port}"

    def fixed_ip(self, task: Task) -> str:
        """A task's IP address; "" if its engine chooses one at each start."""
        return str(task.ip) if self.one_host else ""

    def host(self, task: Task) -> str:
        """A task's IP address or its service name, as `addressing` says."""
        return str(task.ip) if self.addressing == "ip" else task.host or task.name

    @property
    def beacon(self) -> str:
        """`host:port` of the leader's beacon."""
        return f"{self.host(self.leader)}:{self.port + BEACON_PORT_OFFSET}"
