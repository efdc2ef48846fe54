"""The table `[deadline]`: how long things may take. Pure."""

from __future__ import annotations

from pydantic import Field

from cluster_kit.manifest.field_types import Strict
from cluster_kit.manifest.units import Seconds, SecondsOrAuto, SecondsOrNever


class DeadlineTable(Strict):
    """How long things may take."""

    start: Seconds = Field(120.0, description="Time until every server answers")
    job: Seconds = Field(3600.0, description="Time for the program, from its start to its end")
    evaluator_grace: Seconds = Field(
        120.0, description="Time for the evaluator to score the last checkpoint"
    )
    engine: Seconds = Field(
        60.0, description="Time for a Docker engine that stops answering during a run to come back"
    )
    silent: SecondsOrNever = Field(
        10.0,
        description="Time after which a task that is not heard of is lost: it is frozen or cut "
        "off, and is started again. `0`: never",
    )
    stall: SecondsOrAuto = Field(
        "auto",
        validate_default=True,
        description="Time without progress after which the program is started again, and the job "
        'ended at the second time. `"auto"`: 20 times the usual time between reported steps, at '
        "least 30 s; 5 min if nothing is reported, and neither CPU nor network used. `0`: never",
    )
