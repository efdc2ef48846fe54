"""The table `[container]`: how much of the host a task's container can take up. Pure."""

from __future__ import annotations

from pydantic import Field

from cluster_kit.manifest.field_types import Strict
from cluster_kit.manifest.units import BytesOrNone


class ContainerTable(Strict):
    """Bounds of each container, whatever its program does; 0 takes one away."""

    pids: int = Field(
        4096,
        ge=0,
        le=4194304,
        description="How many processes and threads it may have at a time; 0: no limit",
    )
    tmp_size: BytesOrNone = Field(
        4 << 30,
        description='Size of `/tmp`, which is in memory, e.g. `"512m"`; 0: as the engine has it, '
        "mostly half of the memory",
    )
    log_size: BytesOrNone = Field(
        256 << 20,
        description="How much the engine keeps of what it prints, the newest; 0: as the engine is "
        "configured, mostly all of it",
    )
