"""The table `[[mount]]`: a file or directory of this host inside the containers. Pure."""

from __future__ import annotations

from pydantic import Field

from cluster_kit.manifest.field_types import Strict, Text


class PlainMount(Strict):
    """One file or directory of this host that a container sees."""

    source: Text = Field(description="Path of a file or directory of this host")
    target: Text = Field(description="Where containers see it, e.g. `/cache`")
    read_only: bool = Field(True, description="Whether the program cannot write there")


class MountTable(PlainMount):
    """One that tasks see: all of them, or those of some roles."""

    roles: list[Text] = Field(
        default_factory=list, description='Roles that have it, e.g. `["worker"]`; if empty, all'
    )
