"""What a cluster and its tasks are made of: frozen values of a few fields each."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

DEFAULT_ENGINE = "compose"
"""The platform of a manifest that names none."""


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

    `secrets` are names of variables that it has from whoever starts it.
    """

    script: str
    args: tuple[str, ...]
    secrets: tuple[str, ...]
    directory: str


@dataclass(frozen=True)
class Dockerfile:
    """A Dockerfile of the user's own and the directory that it is built from, as paths.

    `named` is what the manifest calls it.
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
    """How much of the host a container can take up at most; None for as much as the engine lets it.

    `pids` are processes and threads, `tmp` bytes of /tmp, `logs` bytes of what it has printed.
    """

    pids: int | None = None
    tmp: int | None = None
    logs: int | None = None


@dataclass(frozen=True)
class Sidecar:
    """A service beside the tasks, on their network, that ends with the job.

    `entrypoint` is None for the image's own; `user` is "" for the image's own.
    `secrets` are names of variables that it has from whoever starts it. The job fails if one that
    is `required` crashes.
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


@dataclass(frozen=True)
class Ulimit:
    """A limit of the kernel for each process of a container; -1 means no limit."""

    name: str
    soft: int
    hard: int


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
class ProfileAt:
    """A trace of all tasks, taken for `seconds` as soon as a task reports `at_step`."""

    at_step: int
    seconds: float


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
