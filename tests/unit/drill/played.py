"""Whole drills with a job of ten seconds and an engine in memory."""

from __future__ import annotations

import tomllib
from typing import Any

from cluster_kit.drill import scenario_file
from cluster_kit.drill.injector import drill
from cluster_kit.drill.result import Drill
from cluster_kit.run.request import Request
from tests.fakes.acting import Life, ends, says
from tests.fakes.stage import NAME, Stage

STEPS = (
    says(0.1, "start", attempt=1),
    says(0.4, "ready"),
    *(says(1.0 + i, "step", step=10 * (i + 1)) for i in range(9)),
    ends(10.0, 0, "finished"),
)
LONG = {"chief-0": [Life(STEPS)]}


def played(stage: Stage, text: str, acting: Any = LONG, **overrides: Any) -> Drill:
    stage.engine.acting = dict(acting)
    written = scenario_file.parse(tomllib.loads(text), "mine.toml")
    return drill(
        stage.host, Request(NAME, overrides), lambda _c: written, 5, stage.workspace, stage.view
    )


def fault(kind: str, task: str, at: str, *lines: str) -> str:
    more = "\n".join(lines)
    return f'[[fault]]\nkind = "{kind}"\ntask = "{task}"\nat = {{ {at} }}\n{more}\n'
