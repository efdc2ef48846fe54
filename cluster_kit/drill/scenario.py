"""A drill's scenario as it is written: its faults, and what must be true at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator, model_validator

from cluster_kit.drill.kinds import KINDS
from cluster_kit.manifest.field_types import BitsPerSecond, Seconds, Strict
from cluster_kit.run.verdict import Reason
from cluster_kit.util.nearest import proposal

RANDOM = "random"
"""The task that is chosen by the drill's seed."""
CHECKPOINT = "checkpoint"
"""What a fault may come after, besides events: the first checkpoint that is complete."""


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
    """The moment of a fault: exactly one of these."""

    step: Annotated[int, Field(ge=1)] | None = None
    epoch: Annotated[int, Field(ge=1)] | None = None
    seconds: Seconds | None = None
    """Since every task of the job answered."""
    after: str | None = None
    """`checkpoint`, or the name of an event."""
    calm: Seconds | None = None
    """Since the training has gone on after all faults that stand before this one."""

    @model_validator(mode="after")
    def _one(self) -> At:
        if len(self.model_fields_set) != 1:
            raise ValueError("needs exactly one of step, epoch, seconds, after, calm")
        return self

    def __str__(self) -> str:
        (key,) = self.model_fields_set
        value = getattr(self, key)
        return f"{_AT[key]} {value:g} s" if isinstance(value, float) else f"{_AT[key]} {value}"


EVERY = ("kind", "at", "task", "role")
"""The keys that a fault of any kind may have."""
_AT = {
    "step": "at step",
    "epoch": "at epoch",
    "seconds": "after",
    "after": "after",
    "calm": "calm for",
}


class Fault(Strict):
    """One fault: its kind, its task or all tasks of a role, its moment, how long it lasts."""

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
    """The least and the most that a metric may be."""

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
    """What must be true at the end. The bounds are of each fault."""

    success: bool | None = None
    reason: Annotated[str, AfterValidator(_reason)] | None = None
    recovers_within: Seconds | None = None
    """From the fault to the first new step."""
    loses_at_most: Annotated[int, Field(ge=0)] | None = None
    """Steps."""
    metrics: Mapping[str, Bounds] = {}

    @model_validator(mode="after")
    def _possible(self) -> Expect:
        if self.success is not None and self.reason is not None:
            good = self.reason == Reason.FINISHED
            if self.success != good:
                ends = "success" if good else "failure"
                said = str(self.success).lower()
                raise ValueError(
                    f'contradictory: success = {said}, but reason = "{self.reason}" is a {ends}'
                )
        return self

    @property
    def succeeds(self) -> bool:
        """Whether the run has to succeed: it has to if nothing else is said."""
        if self.success is None:
            return self.reason in (None, Reason.FINISHED)
        return self.success


class Scenario(Strict):
    """Faults and expectations; `seed` decides what is random."""

    fault: tuple[Fault, ...] = ()
    expect: Expect = Expect()
    seed: int | None = None
