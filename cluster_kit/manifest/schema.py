"""The manifest as the user wrote it: keys, types and defaults. `plan` resolves what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    create_model,
)

from cluster_kit.contract.times import SILENT_S_BY_DEFAULT
from cluster_kit.manifest.field_types import (
    BitsPerSecond,
    Bytes,
    BytesOrNone,
    ExitCodes,
    GpuId,
    PortPair,
    ReadyCheck,
    Seconds,
    SecondsOrAuto,
    SecondsOrNever,
    SoftHard,
    Strict,
    Success,
    Text,
    whole,
)
from cluster_kit.resolved import OWN_IMAGE
from cluster_kit.roles import ROLES

Table = TypeVar("Table", bound=Strict)


class ContainerTable(Strict):
    """Limits of each container, independent of its program; 0 means no limit."""

    pids: int = Field(
        4096,
        ge=0,
        le=4194304,
        description="Maximum number of processes and threads; 0: no limit",
    )
    tmp_size: BytesOrNone = Field(
        4 << 30,
        description='Size of `/tmp`, which is in memory, e.g. `"512m"`; 0: the default of the '
        "engine, mostly half of the memory",
    )
    log_size: BytesOrNone = Field(
        256 << 20,
        examples=["256m"],
        description="How much of a container's newest output the engine keeps; 0: the engine's "
        "default, mostly all of it",
    )


class DataTable(Strict):
    """A program that fetches the data before the first run."""

    fetch: Text = Field(
        description="Path of a Python program that writes the data into its current directory, "
        "before the first start"
    )
    args: list[Text] = Field(default_factory=list, description="Its arguments")
    secrets: list[Text] = Field(
        default_factory=list,
        description="Names of variables of your environment that the program gets",
    )

    def __str__(self) -> str:
        return self.fetch


def _kind(value: object) -> str:
    return "table" if isinstance(value, dict | DataTable) else "name"


Data = Annotated[
    Annotated[Text, Tag("name")] | Annotated[DataTable, Tag("table")], Discriminator(_kind)
]


class DeadlineTable(Strict):
    """How long things may take."""

    start: Seconds = Field(120.0, description="Time until every server answers")
    job: Seconds = Field(3600.0, description="Time for the program, from its start to its end")
    evaluator_grace: Seconds = Field(
        120.0, description="Time for the evaluator to score the last checkpoint"
    )
    engine: Seconds = Field(
        60.0, description="Time for a Docker engine that stops answering during a run to come back"
    )
    silent: SecondsOrNever = Field(
        SILENT_S_BY_DEFAULT,
        description="Time without a heartbeat after which a task counts as lost (frozen or cut "
        "off) and is restarted. `0`: never",
    )
    stall: SecondsOrAuto = Field(
        "auto",
        validate_default=True,
        description="Time without progress after which the program is restarted; the second time "
        'the job ends. `"auto"`: 20 times the usual time between reported steps, at least 30 s, '
        "2 min if a task was lost; 5 min if the program reports nothing and uses neither CPU nor "
        "network. `0`: never",
    )


class Limits(Strict):
    """Limits, environment and GPUs of one role or one task."""

    cpus: float | None = Field(
        None, ge=0.01, allow_inf_nan=False, description="CPU limit in cores, e.g. `0.5`"
    )
    memory: Bytes | None = Field(None, description='Memory limit, e.g. `"2g"`')
    bandwidth: BitsPerSecond | None = Field(
        None, description='Limit of the network speed, each way, e.g. `"100mbit"`'
    )
    environment: dict[str, Text] = Field(
        default_factory=dict,
        description="Environment variables, in addition to the kit's own; `{{ name }}` is filled "
        "for each task, as in `args`",
    )
    env_file: Text | None = Field(
        None,
        description="Path of a file of variables (`NAME=value`, as Compose reads it); the kit "
        "writes its values into no other file",
    )
    secrets: list[Text] | None = Field(
        None,
        description="Names of variables that tasks get from your environment at the start, e.g. "
        '`["WANDB_API_KEY"]`; the kit writes their values into no file',
    )
    shm_size: Bytes | None = Field(
        None,
        description='Size of `/dev/shm`, e.g. `"1g"`; if not given, 64 MiB, and 1 GiB with GPUs',
    )
    ulimits: dict[str, SoftHard] = Field(
        default_factory=dict,
        description="Limits of the kernel for each process, soft and hard, e.g. `nofile = 65536`, "
        '`core = "0:-1"`; -1: none',
    )
    ports: list[PortPair] | None = Field(
        None,
        description="Ports that are published on 127.0.0.1 of this host, e.g. `6006`, or "
        "`\"8080:80\"`: the host's and the container's",
    )
    nodes: Text | None = Field(
        None,
        description="Conditions for the nodes that may run the task: labels, e.g. "
        '`"disk==ssd"`, or `node.hostname`, …; separated by commas',
    )
    gpus: list[GpuId] | None = Field(
        None,
        description="GPUs by index, UUID, MIG slice or CDI name, for the chief or the evaluator, "
        "or for one worker instead of its share of `gpus`",
    )


class TaskLimits(Limits):
    """Limits of one task, which may also set its IP address."""

    ip: str | None = Field(None, description="The task's IP address; needs a fixed `subnet`")


def overlay(below: Limits, above: Limits) -> Limits:
    """The fields of `above` that are set, else those of `below`; tables are merged."""
    return below.model_copy(
        update={
            key: _joined(getattr(below, key), getattr(above, key))
            for key in type(below).model_fields
        }
    )


def _joined(below: object, above: object) -> object:
    if isinstance(below, dict) and isinstance(above, dict):
        return below | above
    return below if above is None else above


class PlainMount(Strict):
    """One file or directory of this host that is mounted into a container."""

    source: Text = Field(description="Path of a file or directory of this host")
    target: Text = Field(description="The path in the containers, e.g. `/cache`")
    read_only: bool = Field(True, description="Whether the program cannot write there")


class MountTable(PlainMount):
    """A mount in all tasks, or in the tasks of some roles."""

    roles: list[Text] = Field(
        default_factory=list, description='Roles that get it, e.g. `["worker"]`; if empty, all'
    )


class NetworkTable(Strict):
    """Options of the cluster's network, in addition to `subnet`."""

    internal: bool = Field(
        False,
        description="Whether containers can reach only each other; on Docker Engine 28 or newer, "
        "this host cannot reach them either",
    )
    encrypted: bool = Field(
        False,
        description="Whether traffic between nodes is encrypted (IPsec), if the engine can do it",
    )
    mtu: int | None = Field(
        None,
        ge=576,
        le=65535,
        description="Size of the largest packet in bytes, e.g. `1400` in a VPN; if not given, the "
        "engine's default, mostly 1500",
    )


class ProfileTable(Strict):
    """One trace of the tasks, taken while the run trains."""

    at_step: int = Field(
        ge=1,
        description="The trace begins as soon as a task reports this step, e.g. `100`",
    )
    seconds: float = Field(
        2.0, gt=0, le=60, description="Length of the trace in seconds, more than 0 and at most 60"
    )


class RestartTable(Strict):
    """Which exit codes of programs are final, and which are not."""

    permanent: list[ExitCodes] = Field(
        default_factory=list,
        description="Exit codes after which a task has failed for good, whatever `retries` says: "
        '`[3, "64-78"]`; 128 + N is a program that signal N ended',
    )
    retryable: list[ExitCodes] = Field(
        default_factory=list,
        description="Exit codes after which the leader's program is started again, too, up to "
        "`retries` times: without this, a leader that fails by itself is not",
    )


class SecretTable(Strict):
    """Where the value of one secret comes from, and which roles get it."""

    file: Text = Field("", description="Path of a file of this host that contains the value")
    environment: Text = Field(
        "",
        description="Name of a variable of your environment that contains the value, instead of "
        "`file`",
    )
    roles: list[Text] = Field(
        default_factory=list, description='Roles that get it, e.g. `["chief"]`; if empty, all'
    )


def _of_text(value: object) -> object:
    """A path alone means a table with only `file`."""
    return {"file": value} if isinstance(value, str) else value


def _schema() -> dict[str, Any]:
    return {"anyOf": [{"type": "string"}, SecretTable.model_json_schema()]}


Secret = Annotated[SecretTable, BeforeValidator(_of_text), WithJsonSchema(_schema())]


class SidecarTable(Strict):
    """One service that runs with the tasks; they reach it by its name."""

    image: Text = Field(
        "", description='Its image, e.g. `"redis:7"`; if not given, the image of the tasks'
    )
    entrypoint: list[Text] | None = Field(
        None, description="Entry point instead of the image's own; `[]`: none"
    )
    command: list[Text] = Field(
        default_factory=list,
        description='Arguments of the entry point, e.g. `["redis-server", "--save", ""]`; with '
        "the tasks' image, the command itself",
    )
    environment: dict[str, Text] = Field(
        default_factory=dict, description="Its environment variables"
    )
    secrets: list[Text] = Field(
        default_factory=list,
        description="Names of variables that it gets from your environment at the start",
    )
    mount: list[PlainMount] = Field(
        default_factory=list,
        description="Files and directories of this host that are mounted into it: "
        "`[[sidecar.NAME.mount]]` with `source`, `target` and `read_only`",
    )
    ports: list[PortPair] = Field(
        default_factory=list,
        description='Ports that are published on 127.0.0.1 of this host, e.g. `6006`, `"8080:80"`',
    )
    required: bool = Field(False, description="Whether the job fails if the service crashes")
    ready: ReadyCheck | None = Field(
        None,
        description="What programs wait for before they start: a port that answers (`6379`), a "
        'page that does (`"http://:8080/health"`), or a command in it that ends with 0 '
        '(`["redis-cli", "ping"]`)',
    )


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
    role.name: (int, Field(role.default, description=role.description))
    for role in ROLES.values()
    if not role.one_for
}
_Counts: Any = create_model("_Counts", __base__=_Head, **_counts)


class Manifest(_Counts):  # one key per row of `roles`, after `name`
    """A cluster-kit manifest."""

    # `with_platforms` adds the words that `engine` takes, and a table for each that has one.
    model_config = ConfigDict(defer_build=True)
    engine: str = Field("", description="What runs the containers")
    style: Literal["auto", "coordinator", "all-tasks"] = Field(
        "auto",
        description='Who runs the program: `"coordinator"`: the chief; `"all-tasks"`: the chief '
        'and every worker; `"auto"`: the chief if there are a chief and ps, else all',
    )
    ps_runs: Literal["server", "program"] = Field(
        "server",
        description='What a ps runs: `"server"`, or `"program"`: the program, like all other tasks',
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
        description="Arguments of the program; `{{ … }}` in them is filled in for each task",
    )
    tf1: bool = Field(
        False,
        description="Set for a program written for TensorFlow 1: `import tensorflow` then gives "
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
        default_factory=dict,
        description="Services that run with the tasks, at most eight, each in a table of its own: "
        "`[sidecar.NAME]`",
    )
    image: Text = Field(
        OWN_IMAGE,
        description='`"trainer"` is the kit\'s image, which it builds; any other needs Python 3.9 '
        "or newer and TensorFlow, and the kit mounts its trainer into it",
    )
    build: Text = Field(
        "",
        description="Instead of `image`: the path of a Dockerfile or of its directory; the kit "
        "builds it when its files have changed; the image must have what `image` needs",
    )
    tensorflow: Text = Field(
        "",
        description="TensorFlow's version in the kit's own image: `\"2.15\"` to the newest, "
        '`"2.16.1"`, or `"nightly"`; if not given, 2.21',
    )
    tensorboard: bool = Field(
        False,
        description="Whether `up` starts TensorBoard on a free port of 127.0.0.1, and prints its "
        "URL; it ends with the run, unless `--keep` is given",
    )
    subnet: str = Field(
        "auto",
        description='Private subnet of the cluster, e.g. `"172.28.0.0/24"`; `"auto"` chooses a '
        "free one, and the same one again if it is still free",
    )
    container: ContainerTable = Field(
        ContainerTable(), description="Limits on what each container uses of the host"
    )
    network: NetworkTable = Field(NetworkTable(), description="Options of the network")
    port: int = Field(
        2222, description="TensorFlow's port, 1024 to 65534; the next one is the beacon's"
    )
    addressing: Literal["ip", "name"] = Field(
        "ip", description='What TF_CONFIG holds: `"ip"` addresses, or service `"name"`s'
    )
    server: Literal["native", "python"] = Field(
        "native",
        description='How servers run: `"native"` through TensorFlow\'s C API; `"python"` is '
        "`tf.distribute.Server`, which starts later and needs more memory",
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
    success: Success = Field(
        "leader",
        description='Who decides that the job succeeded: `"leader"`: the chief, else worker 0; '
        '`"all"`: every task that trains; or a share of a role\'s tasks: `{worker = 0.5}`, more '
        "than 0 and at most 1, rounded up",
    )
    restart: RestartTable = Field(
        RestartTable(), description="Exit codes of programs that are permanent or retryable"
    )
    profile: ProfileTable | None = Field(
        None, description="A trace of the tasks, taken during the run: `[profile]`"
    )
    deadline: DeadlineTable = Field(DeadlineTable(), description="How long things may take")
    role: RoleTable = Field(RoleTable(), description="Limits and environment by role")
    task: dict[str, TaskLimits] = Field(
        default_factory=dict, description="Limits and environment of one task, `[task.worker-1]`"
    )

    @property
    def runs_in_kits_image(self) -> bool:
        """Whether the manifest names neither another image nor a Dockerfile."""
        return self.image == OWN_IMAGE and not self.build

    def count(self, role: str) -> int:
        """The number of tasks of this role in the manifest."""
        if needs_one := ROLES[role].one_for:
            return int(self.count(needs_one) > 0)
        count: int = getattr(self, role)
        return count

    def table(self, platform: str, model: type[Table]) -> Table:
        """The table of a platform that has one, of this model; its key is the platform's name."""
        table = getattr(self, platform)
        assert isinstance(table, model)
        return table

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


def with_platforms(
    engines: Sequence[str], description: str, tables: Mapping[str, tuple[type[Strict], str]]
) -> type[Manifest]:
    """Returns the model of a whole manifest.

    Args:
        engines: the values of `engine`, the default first; `description` explains each.
        tables: the table of each platform that has one, and its description, by its key.
    """
    fields: dict[str, Any] = {
        "engine": (Literal[tuple(engines)], Field(engines[0], description=description))
    }
    for key, (table, meaning) in tables.items():
        fields[key] = (table, Field(table(), description=meaning))
    model: type[Manifest] = create_model("Manifest", __base__=Manifest, **fields)
    model.__doc__ = Manifest.__doc__
    return model


def json_schema(model: type[Manifest]) -> dict[str, Any]:
    """The manifest's JSON Schema (draft 2020-12), for editors."""
    schema = model.model_json_schema()
    named = {"$id": "urn:cluster-kit:manifest:1"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **named, **schema}
