"""The manifest as a person wrote it: TOML, checked for shape only. What it means is `plan`'s."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)

FORMAT = 1

_MEASURE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)\s*([a-z]*)")
_POWERS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZES = {f"{unit}{end}": size for unit, size in _POWERS.items() for end in ("", "b", "ib")}
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


_LEAST_MEMORY, _MOST_MEMORY = 6 * 2**20, 2**60
"""The engine refuses less; nobody has more."""
_LONGEST_S = 366 * 86400.0
_BITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_LEAST_BANDWIDTH, _MOST_BANDWIDTH = 64 * 10**3, 100 * 10**9
"""With less, tasks no longer answer each other's questions in time."""


def _bytes(value: object) -> object:
    """`"2g"`, `"512m"` (powers of 1024) or a whole number of bytes."""
    size: float | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str):
        match = _MEASURE.fullmatch(value.strip().lower())
        if match and match[2] in _SIZES:
            size = float(match[1]) * _SIZES[match[2]]
    if size is None:
        raise ValueError('a size is a number with a unit: "512m", "2g"')
    if not _LEAST_MEMORY <= size <= _MOST_MEMORY:
        raise ValueError("a size is at least 6 MiB, the engine's own minimum, and at most 1 EiB")
    return int(size)


def _seconds(value: object) -> object:
    """A number of seconds, or `"90s"`, `"10m"`, `"2h"`."""
    seconds: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value
    elif isinstance(value, str):
        match = _MEASURE.fullmatch(value.strip().lower())
        if match and match[2] in _SECONDS:
            seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds is None or math.isnan(seconds):
        raise ValueError('a duration is a number of seconds, or "90s", "10m", "2h"')
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError("a duration is more than 0 seconds and at most a year")
    return float(seconds)


def _bits_per_second(value: object) -> object:
    """`"100mbit"`, `"1gbit"`, `"500kbit"`: bits per second in powers of 1000, as tc counts."""
    match = _MEASURE.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if match is None or match[2] not in _BITS:
        raise ValueError('a bandwidth is a number with a unit: "500kbit", "100mbit", "1gbit"')
    bits = float(match[1]) * _BITS[match[2]]
    if not _LEAST_BANDWIDTH <= bits <= _MOST_BANDWIDTH:
        raise ValueError("a bandwidth is at least 64kbit and at most 100gbit")
    return int(bits)


def _whole(value: object) -> object:
    """Pydantic's literals take `true` and `1.0` for 1."""
    if type(value) is not int:
        raise ValueError("a format is a whole number")
    return value


def _text(value: str) -> str:
    """What no command line, environment or UTF-8 file can hold is refused here, not there."""
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("a text cannot hold a NUL character or bytes that are not UTF-8")
    return value


Bytes = Annotated[
    int,
    BeforeValidator(_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]
Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]
BitsPerSecond = Annotated[
    int, BeforeValidator(_bits_per_second), WithJsonSchema({"type": "string"})
]
Text = Annotated[str, AfterValidator(_text)]
GpuId = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    WithJsonSchema({"type": ["string", "integer"]}),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Limits(_Strict):
    """What one role, or one task, gets beyond the defaults."""

    cpus: float | None = Field(
        None, ge=0.01, allow_inf_nan=False, description="CPU limit in cores, e.g. `0.5`"
    )
    memory: Bytes | None = Field(None, description='Memory limit, e.g. `"2g"`')
    bandwidth: BitsPerSecond | None = Field(
        None, description='Network speed each way, really shaped, e.g. `"100mbit"`'
    )
    environment: dict[str, Text] = Field(
        default_factory=dict, description="Environment variables, added to the kit's own"
    )
    gpus: list[GpuId] | None = Field(
        None, description="GPUs of this task by name; the chief or the evaluator, one worker"
    )


class TaskLimits(Limits):
    """The same for one task, which may also pin its address."""

    ip: str | None = Field(None, description="Pin this task's address; needs a fixed `subnet`")


class DeadlineTable(_Strict):
    """How long things may take."""

    start: Seconds = Field(120.0, description="Until every server answers")
    job: Seconds = Field(3600.0, description="For the program, from its start to its end")
    evaluator_grace: Seconds = Field(
        120.0, description="For the evaluator to score the last checkpoint after the job's end"
    )


class RoleTable(_Strict):
    """Overrides by role."""

    chief: Limits = Field(Limits(), description="The chief's limits and environment")
    worker: Limits = Field(Limits(), description="Those of every worker")
    ps: Limits = Field(Limits(), description="Those of every parameter server")
    evaluator: Limits = Field(Limits(), description="The evaluator's")


class Manifest(_Strict):
    """A cluster-kit manifest."""

    format: Annotated[Literal[1], BeforeValidator(_whole)] = Field(
        description="Version of this format: `1`"
    )
    name: str = Field(description="The cluster's name, a DNS label")
    chief: int = Field(1, description="Coordinators: 0 or 1")
    worker: int = Field(2, description="Workers: 1 or more")
    ps: int = Field(2, description="Parameter servers: 0 or more")
    evaluator: int = Field(0, description="Side-car evaluators: 0 or 1, in a spec of their own")
    style: Literal["auto", "coordinator", "all-tasks"] = Field(
        "auto",
        description='`"coordinator"`: the chief runs the program; `"all-tasks"`: so do the workers',
    )
    ps_runs: Literal["server", "program"] = Field(
        "server", description="What a ps runs; the program only where all tasks run it"
    )
    chief_job: Literal["chief", "master"] = Field(
        "chief", description="TensorFlow's job name of the chief"
    )
    program: Text = Field(
        "classifier",
        description="A built-in program, or the path of a Python file whose directory is mounted",
    )
    args: list[Text] = Field(
        default_factory=list,
        description="Arguments of the program; one with `{{ … }}` is filled for each task",
    )
    requirements: Text = Field(
        "", description="A file of pip requirements, added to the image; built once"
    )
    data: Text = Field(
        "digits",
        description="A data set of the image, or a directory",
    )
    image: Text = Field(
        "trainer",
        description="`trainer` builds the kit's own; anything else is an image you have",
    )
    subnet: str = Field("auto", description='`"auto"` finds a free one; or a private CIDR')
    port: int = Field(2222, description="TensorFlow's port; the next one is the beacon's")
    addressing: Literal["ip", "name"] = Field(
        "ip", description="What TF_CONFIG holds: addresses or service names"
    )
    server: Literal["native", "python"] = Field(
        "native",
        description="Servers through TensorFlow's C API, or `tf.distribute.Server` "
        "for programs that need Python ops on a worker",
    )
    gpus: Literal["none", "auto"] | list[GpuId] = Field(
        "none",
        description='`"none"`, `"auto"` (CPU only where there is none), or a list of indexes '
        "or UUIDs (also CDI names)",
    )
    gpus_per_worker: int | None = Field(
        None, gt=0, description="GPUs of each worker; the list evenly divided, or 1"
    )
    share_gpus: bool = Field(
        False, description="Put several tasks on one GPU, each with a memory limit"
    )
    gpu_memory: Bytes | None = Field(
        None, description="TensorFlow's limit per task and GPU; an even part where they are shared"
    )
    gpu_check: bool = Field(
        True, description="End the run at once where a task sees other GPUs than promised"
    )
    simulate_gpus: int = Field(
        0, ge=0, le=64, description="Logical CPU devices of each worker that has no GPU"
    )
    retries: int = Field(
        3,
        ge=0,
        le=100,
        description="Restarts per task after a crash; the program goes on from its backup",
    )
    deadline: DeadlineTable = Field(DeadlineTable(), description="How long things may take")
    role: RoleTable = Field(RoleTable(), description="Limits and environment by role")
    task: dict[str, TaskLimits] = Field(
        default_factory=dict, description="The same for one task, `[task.worker-1]`"
    )


def json_schema() -> dict[str, Any]:
    """The manifest's JSON Schema (draft 2020-12), for editors."""
    schema = Manifest.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
