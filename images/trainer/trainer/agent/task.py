"""This container's identity: TF_CONFIG and CLUSTER_KIT_* read once into one frozen value."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from trainer.agent.errors import ContractError
from trainer.agent.injected import gpu_promises
from trainer.agent.injected.gpu_promises import Gpu
from trainer.agent.policies import RestartCodes, SuccessRule, read_restart, read_success
from trainer.contract.times import SILENT_S_BY_DEFAULT

T = TypeVar("T")
EVALUATOR = "evaluator"
DATA_DISPATCHER, DATA_WORKER = "data_dispatcher", "data_worker"
"""The roles of tf.data service's tasks, which are its job names as well."""
CHIEF_JOBS = ("chief", "master")
"""The names of the chief's job in TensorFlow 2 and TensorFlow 1; its task is `chief-0` in both."""


@dataclass(frozen=True)
class Address:
    """`host:port`; IPv6 hosts in brackets, as TensorFlow writes them."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, what: str) -> Address:
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ContractError(f"{what} = {text!r}: must be host:port, as in 10.0.0.5:2222")
        return cls(host.strip("[]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Task:
    """One task of the cluster, as the host described it. Deadlines are in seconds; None means
    none."""

    role: str
    job: str
    """TensorFlow's name of the job: the role, or `master` for a chief with that name."""
    index: int
    cluster: Mapping[str, tuple[str, ...]]
    """Addresses by job name."""
    leader: str
    beacon: Address | None
    servers: Mapping[str, str]
    """Task name to address of every task that runs `serve`."""
    output: Path
    start_deadline_s: float
    job_deadline_s: float | None
    evaluator_grace_s: float
    silent_s: float
    """Seconds without a heartbeat after which a task is lost; 0: never."""
    stall_s: float | None
    """Seconds without progress after which a job hangs; None: by its reports; 0: never."""
    retries: int
    server: str
    gpu_memory_mb: int | None
    gpus: tuple[Gpu, ...]
    """Ids of the devices that are assigned to this task."""
    promises: Mapping[str, tuple[Gpu, ...]]
    """Ids of the assigned devices by server name; only the leader has them."""
    simulate_gpus: int
    """Number of logical CPU devices to show; 0 means one."""
    gpu_check: bool
    tf1: bool
    own_server: bool
    success: SuccessRule | None = None
    """Who decides that the job succeeded; None: the leader."""
    restart: RestartCodes = field(default_factory=RestartCodes)
    data_service: str = ""
    """`grpc://host:port` of tf.data service's dispatcher; "" if the cluster has none."""

    @property
    def name(self) -> str:
        return f"{self.role}-{self.index}"

    @property
    def is_leader(self) -> bool:
        return self.name == self.leader

    @property
    def has_ps(self) -> bool:
        """Whether the workers share variables on ps, so that one can train without the others."""
        return "ps" in self.cluster

    @property
    def address(self) -> Address:
        return Address.parse(self.cluster[self.job][self.index], "TF_CONFIG's own address")

    @property
    def peers(self) -> frozenset[str]:
        """The other tasks that run the program, from the leader's view."""
        others = frozenset(addresses_by_task(self.cluster)) - set(self.servers)
        return frozenset(name for name in others if name not in (self.name, f"{EVALUATOR}-0"))

    @property
    def progress_file(self) -> Path:
        return self.output / "progress" / f"{self.name}.jsonl"

    @property
    def beat_file(self) -> Path:
        """The file that a leader or an evaluator touches once a second, as a heartbeat for the
        host."""
        return self.output / "progress" / f"{self.name}.beat"


def read_task(env: Mapping[str, str] = os.environ) -> Task:
    """The task that `env` describes; raises ContractError, which names the invalid variable."""
    cluster, job, index = read_tf_config(env.get("TF_CONFIG", ""))
    role = role_of(job)
    name = env.get("CLUSTER_KIT_TASK") or f"{role}-{index}"
    if name != f"{role}-{index}":
        raise ContractError(
            f"CLUSTER_KIT_TASK = {name!r}, but TF_CONFIG's task is {role}-{index}: must agree"
        )
    beacon = env.get("CLUSTER_KIT_BEACON")
    server = env.get("CLUSTER_KIT_SERVER") or "native"
    stall = env.get("CLUSTER_KIT_STALL_S", "auto")
    if server not in ("native", "python"):
        raise ContractError(f"CLUSTER_KIT_SERVER = {server!r}: must be native or python")
    return Task(
        role=role,
        job=job,
        index=index,
        cluster=cluster,
        leader=env.get("CLUSTER_KIT_LEADER") or default_leader(cluster, name),
        beacon=Address.parse(beacon, "CLUSTER_KIT_BEACON") if beacon else None,
        servers=server_addresses(cluster, env.get("CLUSTER_KIT_SERVERS")),
        output=Path(env.get("CLUSTER_KIT_OUTPUT") or "/output"),
        start_deadline_s=number(env, "CLUSTER_KIT_START_DEADLINE_S", 120.0),
        job_deadline_s=number(env, "CLUSTER_KIT_JOB_DEADLINE_S", 0.0) or None,
        evaluator_grace_s=number(env, "CLUSTER_KIT_EVALUATOR_GRACE_S", 60.0),
        silent_s=number(env, "CLUSTER_KIT_SILENT_S", SILENT_S_BY_DEFAULT),
        stall_s=None if stall == "auto" else number(env, "CLUSTER_KIT_STALL_S", 0.0),
        retries=int(number(env, "CLUSTER_KIT_RETRIES", 0)),
        server=server,
        gpu_memory_mb=int(number(env, "CLUSTER_KIT_GPU_MEMORY_MB", 0)) or None,
        gpus=read_json(env, "CLUSTER_KIT_GPUS", gpu_promises.reader(env)),
        promises=read_json(env, "CLUSTER_KIT_PROMISES", gpu_promises.read_promises),
        simulate_gpus=int(number(env, "CLUSTER_KIT_SIMULATE_GPUS", 0)),
        gpu_check=env.get("CLUSTER_KIT_GPU_CHECK") != "off",
        tf1=env.get("CLUSTER_KIT_OLD_API") == "on",
        own_server=env.get("CLUSTER_KIT_OWN_SERVER") == "on",
        data_service=env.get("CLUSTER_KIT_DATA_SERVICE", ""),
        success=read_json(env, "CLUSTER_KIT_SUCCESS", read_success),
        restart=read_json(env, "CLUSTER_KIT_RESTART", read_restart),
    )


def read_tf_config(text: str) -> tuple[dict[str, tuple[str, ...]], str, int]:
    """(cluster, job, index) of a TF_CONFIG; a lone `worker-0` if there is none."""
    if not text:
        return {}, "worker", 0
    try:
        config = json.loads(text)
        cluster = {str(job): tuple(hosts) for job, hosts in config.get("cluster", {}).items()}
        job, index = str(config["task"]["type"]), int(config["task"]["index"])
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ContractError(
            f"TF_CONFIG = {text[:200]!r}: must be JSON with cluster, task.type and task.index"
            f" ({type(problem).__name__}: {problem})"
        ) from problem
    if not 0 <= index < len(cluster.get(job, ())):
        raise ContractError(f"TF_CONFIG's task {job}-{index} is not in its own cluster {cluster}")
    return cluster, job, index


def role_of(job: str) -> str:
    """The role of a TensorFlow job: its name, but `chief` for a job called `master`."""
    return "chief" if job in CHIEF_JOBS else job


def is_data_task(name: str) -> bool:
    """Whether a task is one of tf.data service's."""
    return name.startswith((f"{DATA_DISPATCHER}-", f"{DATA_WORKER}-"))


def trains(name: str) -> bool:
    """Whether a task takes part in the training: all but the evaluator and tf.data service's."""
    return not name.startswith(EVALUATOR) and not is_data_task(name)


def addresses_by_task(cluster: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Task name → `host:port`."""
    return {
        f"{role_of(job)}-{index}": host
        for job, hosts in cluster.items()
        for index, host in enumerate(hosts)
    }


def read_json(env: Mapping[str, str], variable: str, read: Callable[[str], T]) -> T:
    """The value that `read` returns for a variable; raises ContractError with the rule if it
    fails."""
    text = env.get(variable, "")
    try:
        return read(text)
    except (ValueError, TypeError, KeyError) as problem:
        raise ContractError(f"{variable} = {text[:200]!r}: {problem}") from problem


def default_leader(cluster: Mapping[str, tuple[str, ...]], name: str) -> str:
    """The chief, else worker 0, else the task itself."""
    for job in (*CHIEF_JOBS, "worker"):
        if cluster.get(job):
            return f"{role_of(job)}-0"
    return name


def server_addresses(
    cluster: Mapping[str, tuple[str, ...]], names: str | None = None
) -> dict[str, str]:
    """Name → address of the tasks that serve: `names` (separated by commas), else by the roles.

    Every ps serves; workers do when a chief coordinates them (there is a chief and a ps).
    """
    tasks = addresses_by_task(cluster)
    if names is not None:
        wanted = [name.strip() for name in names.split(",") if name.strip()]
        unknown = [name for name in wanted if name not in tasks]
        if unknown:
            raise ContractError(f"CLUSTER_KIT_SERVERS: {', '.join(unknown)} not in TF_CONFIG")
        return {name: tasks[name] for name in wanted}
    coordinated = "chief-0" in tasks and "ps-0" in tasks
    roles = ("ps", "worker") if coordinated else ("ps",)
    return {name: host for name, host in tasks.items() if name.rpartition("-")[0] in roles}


def number(env: Mapping[str, str], key: str, default: float) -> float:
    """The number ≥ 0 in `env[key]`, `default` when absent or empty."""
    text = env.get(key) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value < 0:
        raise ContractError(f"{key} = {text!r}: must be a number, 0 or more")
    return value
