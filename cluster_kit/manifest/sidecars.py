"""The table `[sidecar.NAME]`: a service beside the tasks. Pure."""

from __future__ import annotations

from pydantic import Field

from cluster_kit.manifest.field_types import Strict, Text
from cluster_kit.manifest.mounts import PlainMount
from cluster_kit.manifest.published import PortPair


class SidecarTable(Strict):
    """One service beside the tasks; they reach it by its name."""

    image: Text = Field(
        "", description='Its image, e.g. `"redis:7"`; if not given, the image of the tasks'
    )
    entrypoint: list[Text] | None = Field(
        None, description="What the image runs, instead of its own entry point; `[]`: none"
    )
    command: list[Text] = Field(
        default_factory=list,
        description='Arguments of the entry point, e.g. `["redis-server", "--save", ""]`; with '
        "the tasks' image, the command itself",
    )
    environment: dict[str, Text] = Field(
        default_factory=dict, description="Its environment variables"
    )
    secrets: list[Text] = Field(
        default_factory=list,
        description="Names of variables that it has from your own environment at the start",
    )
    mount: list[PlainMount] = Field(
        default_factory=list,
        description="Files and directories of this host that it sees: `[[sidecar.NAME.mount]]` "
        "with `source`, `target` and `read_only`",
    )
    ports: list[PortPair] = Field(
        default_factory=list,
        description='Ports that are published on 127.0.0.1 of this host, e.g. `6006`, `"8080:80"`',
    )
    required: bool = Field(False, description="Whether the job fails if it crashes")
