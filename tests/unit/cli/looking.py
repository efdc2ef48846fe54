"""An engine with clusters that are up, and finished runs, for verbs that show them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.workspace import RunDirectory, new_run
from tests.fakes.hosts import Machine
from tests.unit.cli.clusters_up import ClustersUp

STARTED, ENDED = datetime(2025, 3, 1, 10, 0), datetime(2025, 3, 1, 10, 20, 30)


@dataclass
class FakeEngine(ClustersUp):
    """An engine whose containers have output."""

    def lines(self, container_id: str) -> Iterator[str]:
        yield f"2025-03-01T10:00:01.5Z {container_id} says"

    def follow(
        self, container_id: str, since: float | None = None, *, times: bool = False
    ) -> Iterator[str]:
        assert since is None
        for second, word in enumerate(("one", "\x1b[2Jtwo")):
            yield f"2025-03-01T10:00:0{second}.5Z {word}" if times else word

    def comes_back(self, container_id: str, within_s: float) -> bool:
        return False

    def info(self) -> dict[str, Any]:
        return {}


@pytest.fixture(autouse=True)
def engine(machine: Machine) -> FakeEngine:
    fake = FakeEngine()
    machine.connects(lambda: fake)
    return fake


def ran(root: Path, cluster: str = "demo", **outcome: Any) -> RunDirectory:
    """Write a finished run with the logs of two tasks, and an outcome unless it is None."""
    made = new_run(root / "runs" / cluster, STARTED)
    chief = "2025-03-01T10:00:02.0Z first\n2025-03-01T10:00:04.0Z 4\n"
    (made.logs / "chief-0.log").write_text(chief)
    (made.logs / "ps-0.log").write_text("2025-03-01T10:00:03.0Z 10%\r20%\n")
    if outcome:
        made.outcome.write_text(json.dumps(outcome))
        os.utime(made.outcome, (ENDED.timestamp(), ENDED.timestamp()))
    return made
