"""The base of all tables of a manifest, and the types of texts and GPU ids."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema


class Strict(BaseModel):
    """A frozen table that accepts no unknown key and converts no value to another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _text(value: str) -> str:
    """The text; raises ValueError if a command line, environment or UTF-8 file cannot hold it."""
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("a text cannot hold a NUL character or bytes that are not UTF-8")
    return value


Text = Annotated[str, AfterValidator(_text)]
GpuId = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    WithJsonSchema({"type": ["string", "integer"]}),
]


def whole(value: object) -> object:
    """The value if it is a whole number; raises ValueError otherwise.

    Pydantic's literals would accept `true` and `1.0` for 1.
    """
    if type(value) is not int:
        raise ValueError("a format is a whole number")
    return value
