"""The manifest as the user wrote it: keys, types and defaults. `plan` resolves what it means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, create_model

from cluster_kit.manifest.container import ContainerTable
from cluster_kit.manifest.data import Data
from cluster_kit.manifest.deadlines import DeadlineTable
from cluster_kit.manifest.field_types import GpuId, Strict, Text, whole
from cluster_kit.manifest.kubernetes import KubernetesTable
from cluster_kit.manifest.limits import Limits, TaskLimits, overlay
from cluster_kit.manifest.mounts import MountTable
from cluster_kit.manifest.names import OWN_IMAGE
from cluster_kit.manifest.network import NetworkTable
from cluster_kit.manifest.profile import ProfileTable
from cluster_kit.manifest.secrets import Secret
from cluster_kit.manifest.sidecars import SidecarTable
from cluster_kit.manifest.slurm import SlurmTable
from cluster_kit.manifest.units import Bytes
from cluster_kit.parts import EngineName
from cluster_kit.roles import ROLES

_limits_of_roles: dict[str, Any] = {
    role.name: (Limits, Field(Limits(), description=role.limits_description))
    for role in ROLES.values()
}
_LimitsOfRoles: Any = create_model("_LimitsOfRoles", __base__=Strict, **_limits_of_roles)


class RoleTable(_LimitsOfRoles):  # one key per row of `roles`
    """Overrides by role."""


class _Head(Strict):
    format: Annotated[Literal[1], BeforeValidator(whole)] = Field(
        description="Version of the manifest's format: `1`"
    )
    name: str = Field(
        description="The cluster's name, a DNS label of at most 40 characters, e.g. `my-cluster`"
    )


_counts: dict[str, Any] = {
    role.name: (int, Field(role.default, description=role.description)) for role in ROLES.values()
}
_Counts: Any = create_model("_Counts", __base__=_Head, **_counts)


class Manifest(_Counts):  # one key per row of `roles`, after `name`
    """A cluster-kit manifest."""

    engine: EngineName = Field(
        "compose",
        description='What runs the containers: `"compose"` on this host, Docker `"swarm"`, '
        '`"kubernetes"`, or `"slurm"`',
    )
    style: Literal["auto", "coordinator", "all-tasks"] = Field(
        "auto",
        description='Who runs the program: `"coordinator"`: the chief; `"all-tasks"`: the chief '
        'and every worker; `"auto"`: the chief if there are a chief and ps, else all',
    )
    ps_runs: Literal["server", "program"] = Field(
        "server",
        description='What a ps runs: `"server"`, or `"program"` if all tasks run the program',
    )
    chief_job: Literal["chief", "master"] = Field(
        "chief", description='The chief\'s job name in TF_CONFIG: `"chief"` or `"master"`'
    )
    program: Text = Field(
        "classifier",
        description="A built-in program, or the path of a Python file; its directory is mounted "
        "at `/program`",
    )
    args: list[Text] = Field(
        default_factory=list,
        description="Arguments of the program; one with `{{ … }}` is filled for each task",
    )
    tf1: bool = Field(
        False,
        description="Whether the program is written for TensorFlow 1: `import tensorflow` is then "
        "its API",
    )
    requirements: Text = Field(
        "", description="Path of a file of pip requirements, installed on top of the image"
    )
    data: Data = Field(
        "digits",
        description="A data set of the image, or the path of a directory, mounted at `/data`; or "
        "a table, `[data]`",
    )
    secret: dict[str, Secret] = Field(
        default_factory=dict,
        description="Secrets as files, `/run/secrets/NAME`: NAME = the path of a file of this "
        "host, or a table",
    )
    mount: list[MountTable] = Field(
        default_factory=list, description="Further files and directories of this host"
    )
    sidecar: dict[str, SidecarTable] = Field(
        default_factory=dict, description="Services beside the tasks, at most eight"
    )
    image: Text = Field(
        OWN_IMAGE,
        description='`"trainer"` is the kit\'s own and is built; any other needs Python 3.9 or '
        "newer and TensorFlow, and gets the trainer mounted into it",
    )
    build: Text = Field(
        "",
        description="Instead of `image`: the path of a Dockerfile, or of the directory that it is "
        "in; its image is built if its files have changed, and needs what `image` needs",
    )
    tensorflow: Text = Field(
        "",
        description="TensorFlow's version in the kit's own image: `\"2.15\"` to the newest, "
        '`"2.16.1"`, or `"nightly"`; if not given, 2.21',
    )
    tensorboard: bool = Field(
        False,
        description="Whether `up` shows the run in TensorBoard, at a free port of 127.0.0.1 that "
        "is printed; it ends with the run, or stays with `--keep`",
    )
    subnet: str = Field(
        "auto",
        description='Private subnet of the cluster, e.g. `"172.28.0.0/24"`; `"auto"` finds a free '
        "one, and keeps it",
    )
    container: ContainerTable = Field(
        ContainerTable(), description="How much of the host a container can take up"
    )
    network: NetworkTable = Field(NetworkTable(), description="Options of the network")
    kubernetes: KubernetesTable = Field(
        KubernetesTable(), description="How the job runs on Kubernetes"
    )
    slurm: SlurmTable = Field(SlurmTable(), description="How the job runs on Slurm")
    port: int = Field(
        2222, description="TensorFlow's port, 1024 to 65534; the next one is the beacon's"
    )
    addressing: Literal["ip", "name"] = Field(
        "ip", description='What TF_CONFIG holds: `"ip"` addresses, or service `"name"`s'
    )
    server: Literal["native", "python"] = Field(
        "native",
        description='How servers run: `"native"` through TensorFlow\'s C API; `"python"` is '
        "`tf.distribute.Server`, for programs that need Python ops on a worker",
    )
    gpus: Literal["none", "auto", "require"] | list[GpuId] = Field(
        "none",
        description='GPUs of the workers: `"none"`, `"auto"` (one each; the CPU if the host has '
        'none), `"require"` (the same, but never the CPU), or a list of indexes, UUIDs, MIG slices '
        "or CDI names",
    )
    gpus_per_worker: int | None = Field(
        None,
        gt=0,
        description='GPUs of each worker; if not given, 1 with `"auto"`, and a list is divided '
        "evenly",
    )
    share_gpus: bool = Field(
        False, description="Whether several tasks may share a GPU, each with a memory limit"
    )
    gpu_memory: Bytes | None = Field(
        None,
        description='TensorFlow\'s memory limit per task and GPU, e.g. `"8g"`; if not given, an '
        "even part of a shared GPU, and no limit otherwise",
    )
    gpu_check: bool = Field(
        True, description="Whether a run ends at once if a task does not see its GPUs"
    )
    simulate_gpus: int = Field(
        0,
        ge=0,
        le=64,
        description="Number of logical CPU devices of each worker that has no GPU; 0: one",
    )
    retries: int = Field(
        3,
        ge=0,
        le=100,
        description="Restarts per task after a crash",
    )
    profile: ProfileTable | None = Field(
        None, description="A trace of all tasks that the run takes of itself, `[profile]`"
    )
    deadline: DeadlineTable = Field(DeadlineTable(), description="How long things may take")
    role: RoleTable = Field(RoleTable(), description="Limits and environment by role")
    task: dict[str, TaskLimits] = Field(
        default_factory=dict, description="The same for one task, `[task.worker-1]`"
    )

    @property
    def runs_in_kits_image(self) -> bool:
        """Whether it names neither an image nor a Dockerfile of the user's own."""
        return self.image == OWN_IMAGE and not self.build

    def count(self, role: str) -> int:
        """How many tasks of this role the manifest asks for."""
        count: int = getattr(self, role)
        return count

    def limits(self, role: str) -> Limits:
        """The table `[role.<role>]`."""
        limits: Limits = getattr(self.role, role)
        return limits

    def limits_by_table(self) -> Iterator[tuple[str, Limits]]:
        """Yields each table of a role or a task, with its key."""
        yield from ((f"role.{role}", self.limits(role)) for role in ROLES)
        yield from ((f"task.{name}", limits) for name, limits in self.task.items())

    def limits_of(self, role: str, index: int) -> Limits:
        """One task's limits: `[role.<role>]`, overridden by `[task.<role>-<index>]`."""
        of_role, of_task = self.limits(role), self.task.get(f"{role}-{index}")
        return of_role if of_task is None else overlay(of_role, of_task)


def json_schema() -> dict[str, Any]:
    """The manifest's JSON Schema (draft 2020-12), for editors."""
    schema = Manifest.model_json_schema()
    named = {"$id": "urn:cluster-kit:manifest:1"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **named, **schema}
