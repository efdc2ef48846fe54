"""Reads a drill's scenario: its faults and expectations; reports every problem in it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from cluster_kit.errors import ManifestError, Problem, UsageError
from cluster_kit.manifest.field_types import BitsPerSecond, Seconds, Strict
from cluster_kit.manifest.load import first
from cluster_kit.run.verdict import Reason
from cluster_kit.util.nearest import proposal
from cluster_kit.util.paths import MANIFESTS
from cluster_kit.util.toml_text import to_toml
from cluster_kit.workspace import names

PACKETS, SHAPE, DISK = "packets", "shape", "disk"
AWAY = "away"
"""The kind of fault of a machine that is taken away, and comes back later."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault; `does` is a description in Markdown for the docs.

    `lasts` has the durations in seconds from which a random drill chooses, () if the fault has
    none; `keys` are the keys that only this kind has. The module `injector` applies it.
    """

    name: str
    does: str
    lasts: tuple[float, ...] = ()
    keys: tuple[str, ...] = ()
    beside: str = ""
    """The program of `helpers.PROGRAMS` that causes the fault from a container next to the task's.

    Not every host can give that container the necessary rights, so random drills do not use such
    kinds.
    """
    at_once: bool = False
    """Whether the changes are undone as soon as the fault has happened."""
    spares_leader: bool = False
    """Whether random drills never break the leader, since that would end the job."""
    drawn: bool = True
    """Whether random drills use it, if it needs no container next to the task's."""

    def takes(self, key: str) -> bool:
        """Whether a fault of this kind can have the key."""
        return key in self.keys or (key == "for" and bool(self.lasts))


_KINDS = (
    Kind("crash", "SIGKILL for every process in the task's container"),
    Kind(
        "stop",
        "SIGTERM, and SIGKILL after `grace` (10 s), as when a machine is taken away; the task "
        "comes back as after a crash, but a leader that gets SIGTERM ends the job",
        keys=("grace",),
        spares_leader=True,
    ),
    Kind(
        AWAY,
        "SIGKILL, and the container stays away for `for`, as when a machine is taken away and "
        "comes back later; not the leader's",
        lasts=(5.0, 30.0),
        spares_leader=True,
        drawn=False,
    ),
    Kind("freeze", "SIGSTOP for every process in the container", lasts=(1.0, 5.0, 30.0)),
    Kind(
        "cut",
        "the container has no network; with `from`, no packets pass between it and those tasks",
        lasts=(1.0, 5.0, 30.0),
        keys=("from",),
    ),
    Kind(
        "slow",
        "the container has only `cpus` cores (0.1)",
        lasts=(5.0, 10.0),
        keys=("cpus",),
    ),
    Kind(
        "memory",
        "the container's memory limit is reached, and the kernel kills the task's program, its "
        "largest process (out of memory); its limit is then as before",
        at_once=True,
    ),
    Kind(
        "delay",
        "packets from other tasks arrive `delay` later (0.1 s)",
        lasts=(5.0, 10.0),
        keys=("delay",),
        beside=PACKETS,
    ),
    Kind(
        "loss",
        "`percent` of the packets between it and other tasks are lost (5), in both directions",
        lasts=(5.0, 10.0),
        keys=("percent",),
        beside=PACKETS,
    ),
    Kind(
        "bandwidth",
        "its network is limited to `rate` (10mbit), in both directions",
        lasts=(5.0, 10.0),
        keys=("rate",),
        beside=SHAPE,
    ),
    Kind(
        "disk-full",
        'every write of the task below `/output` fails with "No space left on device"',
        lasts=(1.0, 5.0),
        beside=DISK,
    ),
)
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _KINDS})
"""The kinds by name, in the order of the docs."""


RANDOM = "random"
"""Used in place of a task's name: the seed chooses the task."""
CHECKPOINT = "checkpoint"
"""A value of `after` that is not an event: the first complete checkpoint."""


def _kind(name: str) -> str:
    if name not in KINDS:
        raise ValueError(f"no such kind; {proposal(name, KINDS)}")
    return name


def _reason(name: str) -> str:
    if name not in set(Reason):
        raise ValueError(f"no such reason; {proposal(name, Reason)}")
    return name


Names = Annotated[tuple[str, ...], Field(strict=False, min_length=1)]


class At(Strict):
    """The moment of a fault; exactly one field is set."""

    step: Annotated[int, Field(ge=1)] | None = None
    epoch: Annotated[int, Field(ge=1)] | None = None
    seconds: Seconds | None = None
    """Seconds since every task of the job answered."""
    training: Seconds | None = None
    """Seconds since the leader's first report of a step."""
    after: str | None = None
    """`checkpoint`, or the name of an event."""
    calm: Seconds | None = None
    """Seconds since training continued after all earlier faults of the file."""

    @model_validator(mode="after")
    def _one(self) -> At:
        if len(self.model_fields_set) != 1:
            raise ValueError("needs exactly one of step, epoch, seconds, after, training, calm")
        return self

    def __str__(self) -> str:
        (key,) = self.model_fields_set
        value = getattr(self, key)
        return f"{_AT[key]} {value:g} s" if isinstance(value, float) else f"{_AT[key]} {value}"


EVERY = ("kind", "at", "task", "role")
"""The keys that every kind of fault can have."""
_AT = {
    "step": "at step",
    "epoch": "at epoch",
    "seconds": "after",
    "after": "after",
    "training": "after training for",
    "calm": "calm for",
}


class Fault(Strict):
    """One fault: its kind, its task or all tasks of a role, its moment and its duration."""

    kind: Annotated[str, AfterValidator(_kind)]
    at: At
    task: str | None = None
    role: str | None = None
    lasts: Seconds | None = Field(None, alias="for")
    grace: Seconds | None = None
    cpus: Annotated[float, Field(ge=0.01)] | None = None
    sources: Names | None = Field(None, alias="from")
    delay: Annotated[Seconds, Field(le=10)] | None = None
    percent: Annotated[float, Field(gt=0, le=100)] | None = None
    rate: BitsPerSecond | None = None

    @field_validator("cpus", "percent", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return float(value) if type(value) is int else value

    @model_validator(mode="after")
    def _consistent(self) -> Fault:
        if (self.task is None) == (self.role is None):
            raise ValueError("needs either task or role")
        for field, description in type(self).model_fields.items():
            key = description.alias or field
            if (
                key not in EVERY
                and field in self.model_fields_set
                and not KINDS[self.kind].takes(key)
            ):
                of = ", ".join(kind.name for kind in KINDS.values() if kind.takes(key))
                raise ValueError(f"`{key}` is of {of}, not of {self.kind}")
        return self


class Bounds(Strict):
    """The smallest and the largest allowed value of a metric."""

    min: float | None = None
    max: float | None = None

    @field_validator("min", "max", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return float(value) if type(value) is int else value

    @model_validator(mode="after")
    def _possible(self) -> Bounds:
        if not self.model_fields_set:
            raise ValueError("needs min or max")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"contradictory: min {self.min:g} is more than max {self.max:g}")
        return self


class Expect(Strict):
    """The expected result; the bounds apply to each fault."""

    success: bool | None = None
    reason: Annotated[str, AfterValidator(_reason)] | None = None
    recovers_within: Seconds | None = None
    """Seconds from the fault to the first new step."""
    loses_at_most: Annotated[int, Field(ge=0)] | None = None
    """Steps."""
    metrics: Mapping[str, Bounds] = {}

    @model_validator(mode="after")
    def _possible(self) -> Expect:
        if self.success is not None and self.reason is not None:
            good = self.reason == Reason.FINISHED
            if self.success != good:
                ending = "success" if good else "failure"
                value = str(self.success).lower()
                raise ValueError(
                    f'contradictory: success = {value}, but reason = "{self.reason}" is a {ending}'
                )
        return self

    @property
    def succeeds(self) -> bool:
        """Whether the run must succeed; True if the scenario does not say otherwise."""
        if self.success is None:
            return self.reason in (None, Reason.FINISHED)
        return self.success


class Scenario(Strict):
    """Faults and expectations; `seed` determines the random choices."""

    fault: tuple[Fault, ...] = ()
    expect: Expect = Expect()
    seed: int | None = None


FOLDER = "drills"
"""The directory of scenarios, below that of the manifests."""
KIT = MANIFESTS / FOLDER
"""The directory of the kit's scenarios."""
LONGEST = 60


@dataclass(frozen=True)
class Written:
    """A scenario without its invalid parts, its problems, and its source for messages.

    `numbers` are the positions of its valid faults in the file, from 1. Each problem has its
    position: that of its fault, or a later one.
    """

    scenario: Scenario
    source: str
    problems: tuple[tuple[int, Problem], ...] = ()
    numbers: tuple[int, ...] = ()


def find(reference: str, folder: Path) -> Path:
    """The scenario file with this path, or with this name in `folder`; raises UsageError."""
    if file := first(reference, folder, KIT):
        return file
    raise UsageError(
        f"no scenario `{reference}`: neither a file nor a name in {folder}/",
        proposal(Path(reference).stem, names(folder, KIT)),
    )


def load(path: Path) -> Written:
    """The scenario in a file.

    Raises:
        ManifestError: the file cannot be read, or is not TOML.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        rule = getattr(error, "strerror", None) or f"not valid TOML: {error}"
        hint = "docs/drills.md shows a scenario"
        raise ManifestError(str(path), [Problem(path.name, "", rule, hint)]) from None
    return parse(raw, str(path))


def parse(raw: Mapping[str, Any], source: str) -> Written:
    """The scenario in these tables; each fault is read separately, to report all problems."""
    problems: list[Problem] = []
    fault_tables = raw.get("fault", [])
    if not isinstance(fault_tables, list) or not fault_tables:
        hint = "write one: `[[fault]]`, then its kind, task and at"
        problems.append(Problem("fault", "", "at least one fault is required", hint))
        fault_tables = []
    faults: dict[int, Fault] = {}
    in_order: list[tuple[int, Problem]] = []
    for number, one in enumerate(fault_tables, 1):
        of_fault: list[Problem] = []
        if fault := _read(Fault, f"fault {number}", one, of_fault):
            faults[number] = fault
        in_order += ((number, problem) for problem in of_fault)
    expect = _read(Expect, "expect", raw.get("expect", {}), problems)
    top_level = {key: value for key, value in raw.items() if key not in ("fault", "expect")}
    scenario = _read(Scenario, "", top_level, problems) or Scenario()
    scenario = scenario.model_copy(
        update={"fault": tuple(faults.values()), "expect": expect or Expect()}
    )
    in_order += ((len(fault_tables) + 1, problem) for problem in problems)
    return Written(scenario, source, tuple(in_order), tuple(faults))


Table = TypeVar("Table", bound=BaseModel)


def _read(table: type[Table], where: str, raw: object, problems: list[Problem]) -> Table | None:
    """The table with these values; if it is invalid, None, and `problems` gets its problems."""
    try:
        return table.model_validate(raw)
    except ValidationError as error:
        problems += [_problem(table, where, detail) for detail in error.errors()]
        return None


def _problem(table: type[BaseModel], where: str, detail: Any) -> Problem:
    """The problem for one of pydantic's errors, with the keys of a scenario."""
    keys = [str(part) for part in detail["loc"]]
    key_path = f"{where}: {'.'.join(keys)}" if where and keys else where or ".".join(keys)
    kind, value = detail["type"], to_toml(detail.get("input"))
    value = value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"
    known = _keys_beside(table, keys)
    known_keys = f"keys there: {', '.join(known)}"
    if kind == "missing":
        return Problem(key_path, "", "is required", known_keys)
    if kind == "extra_forbidden":
        return Problem(key_path, value, "no such key", proposal(keys[-1], known))
    rule = str(detail["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
    rule, _, hint = rule.partition("; ")
    return Problem(key_path, value, rule, hint or known_keys)


def _keys_beside(table: type[BaseModel], keys: Sequence[str]) -> list[str]:
    """The keys of the table that contains the last of `keys`, or of the table that it names."""
    inner = _INNER.get(keys[0], table) if keys else table
    return [field.alias or name for name, field in inner.model_fields.items()]


_INNER: Mapping[str, type[BaseModel]] = {"at": At, "metrics": Bounds}
