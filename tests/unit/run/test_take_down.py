"""`cluster-kit down` on a running job: the run counts as stopped, and its files are saved."""

from __future__ import annotations

import os
import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_kit.errors import EngineError
from cluster_kit.run import run_directory
from cluster_kit.run import take_down as taking_down
from cluster_kit.run.take_down import take_down
from cluster_kit.run.verdict import RESUME
from cluster_kit.this_host import SystemClock
from tests.fakes.acting import LEADS, Life, ends, prints
from tests.fakes.stage import NAME, Stage

LONG = Life((*LEADS.steps[:4], prints(1.5, "half way"), ends(300.0, 0, "finished")))


class OtherTerminal(SystemClock):
    """The clock of another process, which waits for the run as long as needed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def time(self) -> float:
        return self._stage.clock.time()


@pytest.fixture
def downs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Runs `down` from another terminal, 2 s after the start, and records its result."""
    monkeypatch.setattr(taking_down, "POLL_S", 0.01)
    counts: list[int] = []
    host = replace(stage.host, clock=OtherTerminal(stage))
    other = threading.Thread(target=lambda: counts.append(take_down(host, stage.engine, NAME)))

    def go() -> None:
        other.start()
        while any(box.state == "running" for box in stage.engine.boxes.values()):
            pass

    stage.clock.at(2.0, go)
    yield counts
    other.join(30)


def test_a_run_that_is_taken_down_was_stopped_and_no_task_is_blamed(
    stage: Stage, downs: list[int]
) -> None:
    outcome = stage.up({"chief-0": [LONG]})
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("stopped", 7, None)
    assert re.fullmatch(
        r"chief-0 was stopped from outside: by `cluster-kit down` at [\d:]{8}", outcome.message
    )
    assert (outcome.last_words, outcome.notes, outcome.cure) == ("", [], RESUME)
    assert stage.saved() == outcome.as_json()
    assert "half way" in (stage.directory.logs / "chief-0.log").read_text()
    assert stage.is_clean()


def test_down_says_that_it_waits_for_logs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million lines take half a minute."""
    for name, value in (("SAVES_S", 0.1), ("SAYS_S", 0.01), ("POLL_S", 0.02)):
        monkeypatch.setattr(taking_down, name, value)
    monkeypatch.setattr(taking_down, "is_claimed", lambda *_: True)
    stage.detach({"chief-0": [LONG]})
    said: list[str] = []
    host = replace(stage.host, clock=OtherTerminal(stage))
    assert take_down(host, stage.engine, NAME, say=said.append) == 5
    assert said == [f"{NAME}: the process that watches it saves its logs (at most 0 s)"]


def test_a_log_that_was_removed_before_it_was_saved_is_noted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise EngineError("no such container")

    monkeypatch.setattr(run_directory, "save_log", lost)
    outcome = stage.up({"chief-0": [LEADS]})
    assert outcome.success and "chief-0: the engine did not give its log" in outcome.notes
    assert stage.saved()["notes"] == outcome.notes


def test_a_run_with_keep_loses_its_containers_nevertheless(stage: Stage, downs: list[int]) -> None:
    assert stage.up({"chief-0": [LONG]}, keep=True).reason == "stopped"
    while not downs:
        pass
    assert downs == [5]
    assert stage.is_clean()


def test_a_leader_that_is_stopped_before_it_can_report_it_is_not_restarted(stage: Stage) -> None:
    stage.detach({"chief-0": [Life(LONG.steps, young=True), LONG]})
    began = stage.clock.monotonic()
    assert take_down(stage.host, stage.engine, NAME) == 5
    assert stage.clock.monotonic() - began < 30
    assert (stage.saved()["reason"], stage.saved()["exit_code"]) == ("stopped", 7)
    assert stage.is_clean()


def test_an_unwatched_cluster_is_judged_saved_and_removed(stage: Stage) -> None:
    stage.detach({"chief-0": [LONG]})
    assert take_down(stage.host, stage.engine, NAME) == 5
    saved = stage.saved()
    assert (saved["reason"], saved["exit_code"], saved["blame"]) == ("stopped", 7, None)
    assert (stage.directory.logs / "chief-0.log").exists()
    assert stage.is_clean()


def test_files_that_root_writes_in_a_users_run_belong_to_that_user(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program := stage.workspace.root / "train.py").write_text("import this\n")
    stage.detach({"chief-0": [LONG]}, program=str(program))
    given: dict[Path, tuple[int, int]] = {}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, *ids, **_: given.update({path: ids}))
    take_down(stage.host, stage.engine, NAME)
    about = stage.directory.path.stat()
    assert set(given.values()) == {(about.st_uid, about.st_gid)}
    names = {str(path.relative_to(stage.directory.path)) for path in given}
    assert names >= {"outcome.json", "run.json", "events.jsonl", "logs/chief-0.log"}
    assert names >= {"program", "program/train.py"}, "its owner can remove it"
    assert not any(name.startswith("output") for name in names)


def test_a_cluster_that_up_did_not_start_is_just_removed(stage: Stage) -> None:
    stage.detach()
    stage.directory.record.unlink()
    assert take_down(stage.host, stage.engine, NAME) == 5
    assert stage.is_clean() and not stage.directory.outcome.exists()


def test_a_leader_whose_container_was_removed_is_not_blamed(stage: Stage) -> None:
    """As by `docker rm --force`: it could not report anything."""

    def remove() -> None:
        for box in list(stage.engine.boxes.values()):
            stage.engine.kill_box(box)
            del stage.engine.boxes[box.id]
            stage.engine._tell(box, "destroy")

    stage.clock.at(2.0, remove)
    outcome = stage.up({"chief-0": [LONG]})
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("stopped", 7, None)
    assert outcome.message == "chief-0 was removed while it ran"
