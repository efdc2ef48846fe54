"""What the sections of a pipeline configuration are made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo

from trainer.programs.detection.config.paths import resolved


def listed(value: object) -> object:
    """One text, or a list of them; TOML and JSON have lists where this model has tuples."""
    return (value,) if isinstance(value, str) else value


def path_from(value: str, info: ValidationInfo) -> str:
    """A path of the configuration as an absolute one (see paths.resolved)."""
    return resolved(value, info.context or {})


def filled(value: tuple[object, ...]) -> tuple[object, ...]:
    """The value itself; ValueError if it is empty."""
    if not value:
        raise ValueError("must hold at least one")
    return value


NotEmpty = AfterValidator(filled)
"""For lists. pydantic's own min_length also complains if every item was refused."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Momentum01 = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
PlaceText = Annotated[str, Field(min_length=1), AfterValidator(path_from)]


class Part(BaseModel):
    """Frozen, and refuses keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
