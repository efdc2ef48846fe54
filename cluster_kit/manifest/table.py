"""What all tables of a manifest share: they are strict, frozen, and have texts that can be used."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, WithJsonSchema


class Strict(BaseModel):
    """A table that takes no unknown key, and converts no value to another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _text(value: str) -> str:
    """The text, if a command line, an environment and a UTF-8 file can hold it.

    Raises ValueError here, so that nothing fails there.
    """
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError("a text cannot hold a NUL character or bytes that are not UTF-8")
    return value


Text = Annotated[str, AfterValidator(_text)]
GpuId = Annotated[
    str,
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
    WithJsonSchema({"type": ["string", "integer"]}),
]
