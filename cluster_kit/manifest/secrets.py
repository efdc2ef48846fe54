"""The table `[secret]`: secrets that containers have as files. Pure."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from cluster_kit.manifest.field_types import Strict, Text


class SecretTable(Strict):
    """Where the value of one secret comes from, and who has it."""

    file: Text = Field("", description="Path of a file of this host that has the value")
    environment: Text = Field(
        "",
        description="Name of a variable of your environment that has the value, in place of `file`",
    )
    roles: list[Text] = Field(
        default_factory=list, description='Roles that have it, e.g. `["chief"]`; if empty, all'
    )


def _of_text(value: object) -> object:
    """A path alone stands for a table with only that."""
    return {"file": value} if isinstance(value, str) else value


def _schema() -> dict[str, Any]:
    return {"anyOf": [{"type": "string"}, SecretTable.model_json_schema()]}


Secret = Annotated[SecretTable, BeforeValidator(_of_text), WithJsonSchema(_schema())]
