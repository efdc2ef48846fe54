"""Ctrl-C and a lost engine at every single step of a run.

Whatever the moment, nothing is left that could be removed, and everything that can be known is
saved.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from cluster_kit.errors import EngineError, KitError
from tests.fakes.stage import Stage, set_up


def count_steps(stage: Stage, then: Callable[[int, str], None]) -> list[str]:
    """Call `then` with number and name of each step of the main thread: each call of the engine and
    of Compose, each message to the view, each wait. Returns the steps' names, as they are added."""
    names: list[str] = []

    def step(name: str) -> None:
        if threading.current_thread() is threading.main_thread():
            names.append(name)
            then(len(names) - 1, name)

    stage.engine.on_call = lambda name: step(f"engine {name}")
    stage.docker.on_call = lambda name: step(f"docker {name}")
    stage.clock.on_sleep = lambda: step("sleep")
    phase_text = stage.view.phase

    def phase(text: str) -> None:
        step(f"phase {text.split()[0]}")
        phase_text(text)

    stage.view.phase = phase  # type: ignore[method-assign]
    return names


def steps(folder: Path) -> list[str]:
    """Returns the steps of a successful run."""
    for stage in set_up(folder):
        names = count_steps(stage, lambda _number, _name: None)
        assert stage.up().success
    return names


def test_the_steps_are_those_of_a_run_from_planning_to_removing(tmp_path: Path) -> None:
    names = steps(tmp_path)
    assert len(names) > 40
    assert set(names) >= {
        "phase planning", "engine info", "docker compose version", "docker image inspect",
        "phase starting", "docker compose -f", "docker start ps-0", "phase running", "sleep",
        "engine stop", "phase removing", "engine remove",
    }, names  # fmt: skip


def stage_of_its_own(folder: Path, number: int) -> AbstractContextManager[Stage]:
    own = folder / str(number)
    own.mkdir()
    return contextmanager(set_up)(own)


def test_an_interrupt_at_any_step(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for moment, name in enumerate(steps(tmp_path)):
        own = stage_of_its_own(tmp_path, moment)
        with subtests.test(moment=moment, step=name), own as stage:
            assert_interrupted(stage, moment)


def assert_interrupted(stage: Stage, moment: int) -> None:
    interrupted_at: list[str] = []

    def interrupt(number: int, name: str) -> None:
        if number >= moment and stage.interruptible:
            stage.interruptible = False  # as `interrupt_once`: further ones are ignored
            interrupted_at.append(name)
            raise KeyboardInterrupt

    count_steps(stage, interrupt)
    try:
        outcome = stage.up()
    except KeyboardInterrupt:
        assert stage.docker.ups == [], f"interrupted at {interrupted_at}, after the start"
        assert stage.is_clean()
        return
    assert stage.is_clean(), interrupted_at
    saved = stage.saved()
    assert saved == outcome.as_json()
    if interrupted_at:
        assert (saved["reason"], saved["exit_code"]) == ("interrupted", 130), interrupted_at
        assert stage.view.phases[-2].startswith("interrupted")
    else:
        assert (saved["reason"], saved["exit_code"]) == ("finished", 0)


def test_an_engine_that_is_lost_at_any_step(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for moment, name in enumerate(steps(tmp_path)):
        own = stage_of_its_own(tmp_path, moment)
        with subtests.test(moment=moment, step=name), own as stage:
            assert_lost(stage, moment)


def assert_lost(stage: Stage, moment: int) -> None:
    def lose(number: int, _name: str) -> None:
        if number == moment:
            stage.engine.lose()

    names = count_steps(stage, lose)
    with pytest.raises(KitError) as lost:
        stage.up(deadline={"engine": 5.0})
    assert isinstance(lost.value, EngineError), names[moment]
    assert lost.value.exit_code == 4
    if not stage.ran:
        return
    saved = stage.saved()
    assert saved["reason"] in ("engine", "finished"), names[moment]
    if saved["reason"] == "engine":
        assert (saved["success"], saved["exit_code"]) == (False, 4)
        assert saved["message"] == lost.value.message
    progress = stage.directory.progress / "chief-0.jsonl"
    if progress.exists() and "metrics" in progress.read_text() and moment > 33:
        assert saved["metrics"]["test_accuracy"] == 0.9
    assert (stage.directory.path / "events.jsonl").exists()


def test_the_error_about_a_lost_engine_says_how_to_continue(stage: Stage, tmp_path: Path) -> None:
    stage.clock.at(2.5, stage.engine.lose)
    with pytest.raises(EngineError, match="stopped in the middle of the run") as lost:
        stage.up()
    assert "cluster-kit down NAME" in lost.value.hint
    saved = stage.saved()
    assert saved["cure"] == lost.value.hint
    assert saved["timings_s"]["first_step"] == 1.0
    assert {task["name"]: task["exit_code"] for task in saved["tasks"]}["chief-0"] is None
    assert {event["action"] for event in stage.events()} == {"create", "start"}


def test_a_broken_connection_has_no_effect(stage: Stage) -> None:
    """The engine and the containers continue: it repeats its events."""
    for moment in (0.7, 1.5, 2.9, 3.2):
        stage.clock.at(moment, stage.engine.hang_up)
    outcome = stage.up()
    assert outcome.success
    assert [task.restarts for task in outcome.tasks] == [0] * 5
    assert len({(event["time"], event["task"]) for event in stage.events()}) == len(stage.events())
    assert stage.is_clean()


def test_a_restarted_engine_has_ended_the_containers(stage: Stage) -> None:
    def restart() -> None:
        stage.engine.hang_up()
        for box in stage.engine.boxes.values():
            box.state, box.exit_code, box.finished = "exited", 137, stage.clock.time()

    stage.clock.at(1.5, restart)
    with pytest.raises(EngineError, match="stopped in the middle of the run"):
        stage.up()
    assert stage.saved()["reason"] == "engine"
    assert "TensorFlow server ready" in (stage.directory.logs / "ps-0.log").read_text()
    assert stage.is_clean()


def test_a_cluster_that_another_command_removes_ends(stage: Stage) -> None:
    """As by `cluster-kit down` in another terminal."""
    stage.clock.at(1.5, lambda: stage.engine.remove("demo"))
    outcome = stage.up()
    assert (outcome.success, outcome.reason, outcome.blame) == (False, "stopped", None)
    assert stage.is_clean()


def test_a_leader_that_is_removed_by_force_ends_the_run(stage: Stage) -> None:
    """As by `docker rm -f`: it leaves no end message, and cannot be restarted."""

    def remove() -> None:
        leader = next(box for box in stage.engine.boxes.values() if box.leads)
        stage.engine._die(leader, 137)
        del stage.engine.boxes[leader.id]

    stage.clock.at(1.5, remove)
    outcome = stage.up()
    assert (outcome.reason, outcome.blame) == ("failed", "chief-0")
    assert "killed by signal 9" in outcome.message
    assert stage.is_clean()
