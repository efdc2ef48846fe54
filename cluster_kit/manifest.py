"""The manifest as a person wrote it: TOML, checked for shape only. What it means is `plan`'s."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

FORMAT = 1

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _bytes(value: object) -> object:
    """`"2g"`, `"512m"` (powers of 1024) or a whole number of bytes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", str(value).strip().lower())
    if not match:
        raise ValueError('a size is a number with a unit: "512m", "2g"')
    return int(float(match[1]) * _UNITS[match[2]])


def _seconds(value: object) -> object:
    """A number of seconds, or `"90s"`, `"10m"`, `"2h"`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", str(value).strip().lower())
    if not match:
        raise ValueError('a duration is a number of seconds, or "90s", "10m", "2h"')
    return float(match[1]) * _SECONDS[match[2]]


Bytes = Annotated[
    int,
    BeforeValidator(_bytes),
    Field(gt=0),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}),
]
Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    Field(gt=0),
    WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}),
]
GpuId = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    WithJsonSchema({"type": ["string", "integer"]}),
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Limits(_Strict):
    """What one role, or one task, gets beyond the defaults."""

    cpus: float | None = Field(None, gt=0, description="CPU limit in cores, e.g. `0.5`")
    memory: Bytes | None = Field(None, description='Memory limit, e.g. `"2g"`')
    environment: dict[str, str] = Field(
        default_factory=dict, description="Environment variables, added to the kit's own"
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

    chief: Limits = Limits()
    worker: Limits = Limits()
    ps: Limits = Limits()
    evaluator: Limits = Limits()


class Manifest(_Strict):
    """A cluster-kit manifest."""

    format: Literal[1] = Field(description="Version of this format: `1`")
    name: str = Field(description="The cluster's name, a DNS label")
    chief: int = Field(1, description="Coordinators: 0 or 1")
    worker: int = Field(2, description="Workers: 1 or more")
    ps: int = Field(2, description="Parameter servers: 0 or more; they need a chief")
    evaluator: int = Field(0, description="Side-car evaluators: 0 or 1, in a spec of their own")
    program: str = Field(
        "classifier",
        description="A built-in program, or the path of a Python file whose directory is mounted",
    )
    args: list[str] = Field(default_factory=list, description="Arguments of the program")
    data: str = Field(
        "digits",
        description="A data set of the image, or a directory with `Train/ Validate/ Test/`",
    )
    image: str = Field(
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
        "or UUIDs",
    )
    gpus_per_worker: int | None = Field(
        None, gt=0, description="GPUs of each worker; the list evenly divided, or 1"
    )
    retries: int = Field(
        3, ge=0, description="Restarts per task after a crash; the program goes on from its backup"
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
