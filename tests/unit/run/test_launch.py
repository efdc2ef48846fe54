"""A run that ends without a verdict: what its outcome says, and what is saved of it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cluster_kit.errors import EngineError, HostError
from cluster_kit.run import launch
from cluster_kit.workspace import RunDirectory
from tests.make import cluster


class FakeEngine:
    def __init__(self, *, dead: bool = False) -> None:
        self.dead = dead

    def containers(self, _name: str) -> list[Any]:
        if self.dead:
            raise EngineError("no answer")
        return [SimpleNamespace(id="1", name="chief-0")]

    def logs(self, _id: str) -> str:
        return "said before the end\n"


def noted(tmp_path: Path, error: BaseException, engine: FakeEngine | None = None) -> Any:
    run = RunDirectory(tmp_path)
    run.logs.mkdir(exist_ok=True)
    it = SimpleNamespace(engine=engine or FakeEngine(), run=run)
    launch._note_failure(it, error, cluster(), None)  # type: ignore[arg-type]
    return json.loads(run.outcome.read_text())


@pytest.mark.parametrize(
    ("error", "code", "reason", "message"),
    [
        (EngineError("compose failed", "mend it"), 4, "engine", "compose failed"),
        (HostError("no room"), 3, "host", "no room"),
        (SystemExit(1), 1, "internal", "a bug in the kit: SystemExit: 1"),
        (AssertionError(), 1, "internal", "a bug in the kit: AssertionError"),
    ],
)
def test_a_failure_is_called_what_it_is(
    tmp_path: Path, error: BaseException, code: int, reason: str, message: str
) -> None:
    told = noted(tmp_path, error)
    assert (told["exit_code"], told["reason"], told["message"]) == (code, reason, message)


def test_the_logs_are_saved_where_the_engine_still_answers(tmp_path: Path) -> None:
    noted(tmp_path, SystemExit(1))
    assert (tmp_path / "logs/chief-0.log").read_text() == "said before the end\n"


def test_an_engine_that_is_gone_hides_nothing(tmp_path: Path) -> None:
    told = noted(tmp_path, EngineError("no answer"), FakeEngine(dead=True))
    assert told["message"] == "no answer"
