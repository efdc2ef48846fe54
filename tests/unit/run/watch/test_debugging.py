"""`up --debug`: a program may wait at a breakpoint for any time."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from cluster_kit.errors import HostError, UsageError
from cluster_kit.image import debugger
from cluster_kit.run import launch as launching
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.request import Request
from tests.fakes.acting import LEADS, TRAINS, Life, Step, ends, prints, says
from tests.fakes.stage import NAME, Stage

LATE_S = 300.0


@pytest.fixture
def fetched(stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Records the messages about fetching the debugger."""
    outputs: list[str] = []
    monkeypatch.setattr(debugger, "ensure", lambda _host, _say: outputs.append("fetched"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return outputs


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def debug(stage: Stage, asked: str, **overrides: object) -> Outcome:
    request = Request(NAME, overrides, asked)
    return launching.launch(
        stage.host, request, stage.workspace, stage.view, keep=False, resume=False
    )


def late(step: Step) -> Step:
    return Step(step.at + LATE_S, step.event, step.fields, step.line, step.code)


def test_the_waiting_task_is_printed_and_nothing_ends_the_job(
    stage: Stage, fetched: list[str]
) -> None:
    stage.engine.acting = {"chief-0": [Life(tuple(late(step) for step in LEADS.steps))]}
    port = free_port()
    outcome = debug(stage, f"chief-0:{port}", deadline={"start": "10s", "job": "60s"})
    assert outcome.success, outcome.message
    message = f"chief-0 waits for a debugger on 127.0.0.1:{port}; deadlines are off"
    assert any(phase.startswith(message) for phase in stage.view.phases)
    assert fetched == ["fetched"]
    text = stage.docker.ups[-1].read_text()
    assert f"127.0.0.1:{port}:5678" in text
    assert stage.is_clean()


def test_programs_of_a_worker_and_an_evaluator_may_wait_after_the_leaders_end(
    stage: Stage, fetched: list[str]
) -> None:
    alone = {"chief": 0, "ps": 0, "evaluator": 0, "style": "all-tasks"}
    stands = Life((*TRAINS.steps, prints(2.0, "mine"), ends(90.0, 0, "finished")), deaf=True)
    stage.engine.acting = {"worker-0": [LEADS], "worker-1": [stands]}
    outcome = debug(stage, f"worker-1:{free_port()}", **alone)
    assert outcome.success, outcome.message
    assert {task.name: task.exit_code for task in outcome.tasks} == {"worker-0": 0, "worker-1": 0}
    assert outcome.timings_s["total"] > 80
    assert ("worker-1", "mine") in stage.view.lines
    scores = Life((says(0.1, "start", attempt=1), ends(120.0, 0, "finished")), deaf=True)
    stage.engine.acting = {"evaluator-0": [scores]}
    assert debug(stage, f"evaluator-0:{free_port()}").success


def test_a_port_in_use_on_this_host_is_reported(stage: Stage, fetched: list[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(HostError, match=f"ports: taken: 127.0.0.1:{port}"):
            debug(stage, f"chief-0:{port}")
    assert not stage.ran
    assert stage.is_clean()
    assert fetched == []


def test_an_unknown_task_starts_nothing(stage: Stage, fetched: list[str]) -> None:
    with pytest.raises(UsageError, match="task chief-1 was not found"):
        debug(stage, "chief-1")
    assert not stage.ran


def test_a_detached_run_prints_the_waiting_task_too(stage: Stage, fetched: list[str]) -> None:
    port = free_port()
    request = Request(NAME, {}, f"chief-0:{port}")
    launching.launch_detached(stage.host, request, stage.workspace, stage.view, resume=False)
    assert stage.view.phases[-1].startswith(f"chief-0 waits for a debugger on 127.0.0.1:{port}")
    assert stage.attach().success


def test_a_plan_that_is_made_again_has_the_debugger_too(stage: Stage, fetched: list[str]) -> None:
    stage.docker.takes_subnet = 1
    port = free_port()
    assert debug(stage, f"chief-0:{port}").success
    assert f"127.0.0.1:{port}:5678" in stage.docker.ups[-1].read_text()
    assert len(stage.docker.ups) == 2
