"""A cluster that is up, and requests of users to it."""

from __future__ import annotations

from collections.abc import Callable

from cluster_kit.run import lifecycle
from tests.fakes.acting import LEADS, Life, ends, says
from tests.fakes.box import Box
from tests.fakes.stage import Stage

BEGINS = (says(0.1, "start", attempt=1), says(0.4, "ready"))
LONG = Life((*BEGINS, says(1.0, "step", step=1), ends(300.0, 0, "finished")))
TRAINS = Life((*BEGINS, says(1.0, "step", step=1)))
ACTING = {"chief-0": [LONG, LEADS], "worker-1": [TRAINS]}


def box(stage: Stage, task: str) -> Box:
    return next(one for one in stage.engine.boxes.values() if one.task == task)


def do(stage: Stage, after_s: float, action: Callable[[], object]) -> None:
    def act() -> None:
        action()

    stage.clock.at(after_s, act)


def restart(stage: Stage, task: str) -> tuple[str, ...]:
    return lifecycle.restart(stage.host, stage.engine, box(stage, task).shown())
