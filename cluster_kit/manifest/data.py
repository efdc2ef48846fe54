"""The key `data`: a data set's name, a directory's path, or the table `[data]`. Pure."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from cluster_kit.manifest.field_types import Strict, Text


class DataTable(Strict):
    """A program that fetches the data before the first run."""

    fetch: Text = Field(
        description="Path of a Python program that writes the data into its current directory, "
        "before the first start"
    )
    args: list[Text] = Field(default_factory=list, description="Its arguments")
    secrets: list[Text] = Field(
        default_factory=list, description="Variables that it has from your environment"
    )

    def __str__(self) -> str:
        return self.fetch


def _kind(value: object) -> str:
    return "table" if isinstance(value, dict | DataTable) else "name"


Data = Annotated[
    Annotated[Text, Tag("name")] | Annotated[DataTable, Tag("table")], Discriminator(_kind)
]
