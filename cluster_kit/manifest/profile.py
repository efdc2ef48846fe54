"""The table `[profile]`: a trace that a run takes of itself. Pure."""

from __future__ import annotations

from pydantic import Field

from cluster_kit.manifest.field_types import Strict


class ProfileTable(Strict):
    """One trace of all tasks, taken while the run trains."""

    at_step: int = Field(
        ge=1,
        description="The step at which the trace begins, as soon as a task reports it, e.g. `100`",
    )
    seconds: float = Field(
        2.0, gt=0, le=60, description="For how many seconds, more than 0 and at most 60"
    )
