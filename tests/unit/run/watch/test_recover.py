"""Frozen or disconnected tasks: which are restarted, how often, and the messages about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster_kit.observe.heartbeats import SignOfLife
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import Container
from cluster_kit.run.recovery import to_start_again
from cluster_kit.run.verdict import KILLED_S
from tests.fakes.acting import LEADS, Life, dies, ends, says
from tests.fakes.clock import BEGAN
from tests.fakes.stage import Stage

READY = (says(0.1, "start", attempt=1), says(0.4, "ready"), says(0.9, "step", step=1))


def hears_nothing_of(task: str, *more: object, end: float = 9.0) -> Life:
    """Returns a leader that reports this, and succeeds."""
    silent = says(2.0, "silent", of=task, last_heard=BEGAN - 9, server=False)
    return Life((*READY, silent, *more, ends(end, 0, "finished")))  # type: ignore[arg-type]


def test_a_frozen_worker_is_killed_and_restarted(stage: Stage) -> None:
    stage.clock.at(1.5, lambda: stage.engine.pause("worker-1", True))
    outcome = stage.up({"chief-0": [hears_nothing_of("worker-1")]})
    assert outcome.success, outcome
    assert {task.name: task.restarts for task in outcome.tasks}["worker-1"] == 1
    actions = [event["action"] for event in stage.events() if event["task"] == "worker-1"]
    assert actions[:6] == ["create", "start", "pause", "kill", "die", "start"]
    (note,) = outcome.notes
    message = r"worker-1 has been silent for 1\d s \(frozen or cut off; last heard \d\d:\d\d:\d\d\)"
    assert re.fullmatch(rf"{message}; it was started again", note)
    assert note.removesuffix("; it was started again") in stage.view.phases


def test_a_disconnected_task_is_first_connected_to_its_network(stage: Stage) -> None:
    calls: list[str] = []
    stage.engine.on_call = calls.append
    stage.clock.at(1.0, lambda: cut_off(stage, "worker-1"))
    assert stage.up({"chief-0": [hears_nothing_of("worker-1")]}).success
    assert [c for c in calls if c in ("kill", "attach", "start_again")] == [
        "kill", "attach", "start_again",
    ]  # fmt: skip


@pytest.mark.parametrize("is_cut_off", [True, False])
def test_a_task_that_ended_since_it_is_cut_off_is_connected_after_its_restart(
    stage: Stage, is_cut_off: bool
) -> None:
    """It ended, was reported, and was started again by the engine before the report was read."""
    calls: list[str] = []
    stage.engine.on_call = calls.append
    if is_cut_off:
        stage.clock.at(1.0, lambda: cut_off(stage, "worker-1"))
    worker = [Life((says(0.2, "ready"), dies(1.99))), Life((says(0.1, "ready"),))]
    outcome = stage.up({"chief-0": [hears_nothing_of("worker-1")], "worker-1": worker})
    assert outcome.success
    assert calls.count("attach") == is_cut_off


def cut_off(stage: Stage, task: str) -> None:
    box = next(box for box in stage.engine.boxes.values() if box.task == task)
    box.attached = False


def test_a_task_that_answers_again_in_time_is_not_restarted(stage: Stage) -> None:
    spoke = says(2.0, "heard", of="worker-1", seconds=11.0)
    outcome = stage.up({"chief-0": [hears_nothing_of("worker-1", spoke)]})
    assert outcome.success
    assert {task.restarts for task in outcome.tasks} == {0}
    assert re.search(r"; it answered again after 1\d s$", outcome.notes[0])


@pytest.mark.parametrize("slow", ["kill", "start_again"])
def test_a_paused_task_that_answers_while_it_is_killed_was_started_again(
    stage: Stage, slow: str
) -> None:
    def takes_a_while(call: str) -> None:
        if call == slow:
            stage.clock.sleep(0.5)

    stage.engine.on_call = takes_a_while
    stage.clock.at(1.5, lambda: stage.engine.pause("worker-1", True))
    spoke = says(2.3, "heard", of="worker-1", seconds=11.0)
    outcome = stage.up({"chief-0": [hears_nothing_of("worker-1", spoke)]})
    times = {e["action"]: e["time"] - BEGAN for e in stage.events() if e["task"] == "worker-1"}
    assert times["kill"] - KILLED_S < 2.3 < times["start"]
    (note,) = outcome.notes
    assert note.endswith("; it was started again")


def test_silent_tasks_are_restarted_as_often_as_other_lost_tasks(stage: Stage) -> None:
    silent = [says(2.0 + i, "silent", of="ps-0", last_heard=BEGAN, server=False) for i in range(5)]
    leader = Life((*READY, *silent, ends(9.0, 6, "silent", "ps-0 has been silent", "ps-0")))
    outcome = stage.up({"chief-0": [leader]})
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("silent", 6, "ps-0")
    assert {task.name: task.restarts for task in outcome.tasks}["ps-0"] == 2


def test_nothing_is_restarted_if_the_check_is_off(stage: Stage) -> None:
    outcome = stage.up({"chief-0": [hears_nothing_of("worker-1")]}, deadline={"silent": 0})
    assert {task.restarts for task in outcome.tasks} == {0}


def give_a_sign(stage: Stage) -> None:
    (stage.directory.progress / "chief-0.beat").touch()


def test_a_frozen_leader_is_restarted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SignOfLife, "look", sign_until(stage, 1.0))
    stage.clock.at(1.0, lambda: stage.engine.pause("chief-0", True))
    outcome = stage.up({"chief-0": [Life(READY), LEADS]})
    assert outcome.success, outcome
    assert {task.name: task.restarts for task in outcome.tasks}["chief-0"] == 1
    assert re.match(r"chief-0 has been silent for 1\d s .*; it was started again", outcome.notes[0])


@pytest.mark.parametrize("seconds", [11.0, 40.0])
def test_a_paused_worker_of_which_the_leader_reports_nothing_is_restarted(
    stage: Stage, seconds: float
) -> None:
    """The leader was paused with it and started again, or waits for it to answer."""
    stage.clock.at(1.5, lambda: stage.engine.pause("worker-1", True))
    stage.clock.at(1.5 + seconds, lambda: stage.engine.pause("worker-1", False))
    outcome = stage.up({"chief-0": [Life((*READY, ends(60.0, 0, "finished")))]})
    assert outcome.success
    restarts = {task.name: task.restarts for task in outcome.tasks}
    assert restarts == {**dict.fromkeys(restarts, 0), "worker-1": int(seconds > 13)}
    for note in outcome.notes:
        assert re.match(r"worker-1 has been silent for 13 s .*; it was started again", note)
    assert len(outcome.notes) == restarts["worker-1"]


def test_a_leader_that_freezes_each_time_ends_the_run_with_its_name(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SignOfLife, "look", sign_until(stage, 0.5))
    outcome = stage.up({"chief-0": [Life(READY, stubborn=True)]})
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("silent", 6, "chief-0")
    assert "chief-0 has been silent for 1" in outcome.message
    assert {task.name: task.restarts for task in outcome.tasks}["chief-0"] == 2


def sign_until(stage: Stage, seconds: float):  # type: ignore[no-untyped-def]
    """Send heartbeats that stop this many seconds after each start, in lives without an end."""

    def look(_self: SignOfLife, _moment: float, started: float) -> float:
        leads = next((b for b in stage.engine.boxes.values() if b.leads), None)
        if leads is None or stage.engine.life(leads) is LEADS:
            return 0.0
        return max(0.0, stage.clock.time() - started - seconds)

    return look


def test_heartbeats_are_counted_from_a_start_and_by_the_observers_own_time(tmp_path: Path) -> None:
    import os

    file = tmp_path / "progress" / "chief-0.beat"
    file.parent.mkdir()
    sign = SignOfLife(tmp_path, "chief-0")
    assert sign.look(4.0, 1000.0) == 0, "it has not begun"
    file.touch()
    os.utime(file, (900.0, 900.0))
    sign = SignOfLife(tmp_path, "chief-0")
    assert sign.look(5.0, 1000.0) == 0
    assert [sign.look(t, 1000.0) for t in (6.0, 7.0)] == [0, 0], "of the life before"
    os.utime(file, (1001.0, 1001.0))
    assert [sign.look(t, 1000.0) for t in (8.0, 9.0, 10.5)] == [0, 1, 2.5]
    assert sign.look(600.0, 1000.0) == 4.5, "the host was asleep"
    os.utime(file, (1002.0, 1002.0))
    assert sign.look(601.0, 1000.0) == 0
    assert sign.look(602.0, 1500.0) == 0, "it was started again"
    os.utime(file, (800.0, 800.0))
    assert [sign.look(t, 1500.0) for t in (603.0, 604.0)] == [0, 1], "the clock was set back"
    file.unlink()
    assert sign.look(605.0, 1500.0) == 0


def container(name: str, *, attached: bool = True, state: str = "running") -> Container:
    role, _, index = name.rpartition("-")
    return Container(
        id=name, cluster="demo", name=name, role=role, index=int(index), leader=name == "chief-0",
        ip="10.0.0.1", gpus=(), state=state, exit_code=None, restarts=0, oom=False, created=0.0,
        started=0.0, finished=-1.0, output="", attached=attached,
    )  # fmt: skip


SERVERS = ["worker-0", "worker-1", "ps-0"]
NAMES = ("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0")


@pytest.mark.parametrize(
    ("silent", "others", "expected"),
    [
        (["worker-1"], {}, ["worker-1"]),
        (["evaluator-0"], {}, ["evaluator-0"]),
        (["worker-1", "ps-0"], {}, ["worker-1", "ps-0"]),
        (["chief-0", "worker-1"], {}, ["chief-0"]),
        (["worker-0", "worker-1", "ps-0", "evaluator-0"], {}, ["chief-0", *SERVERS]),
        (["worker-0"], {"chief-0": {"attached": False}}, ["chief-0", *SERVERS]),
        (["worker-0", "worker-1", "ps-0"], {"ps-0": {"state": "paused"}},
         ["worker-0", "worker-1", "ps-0"]),
        (["worker-0", "worker-1", "ps-0"], {"worker-0": {"attached": False}},
         ["worker-0", "worker-1", "ps-0"]),
    ],
)  # fmt: skip
def test_which_tasks_are_restarted(
    stage: Stage, silent: list[str], others: dict[str, dict[str, object]], expected: list[str]
) -> None:
    from cluster_kit.observe.task_view import TaskView

    tasks = {n: TaskView(n, n[:-2], "10.0.0.1", (), State.TRAINING) for n in NAMES}
    seen = RunState(tasks, "chief-0")
    containers = [container(n, **others.get(n, {})) for n in NAMES]  # type: ignore[arg-type]
    assert [c.name for c in to_start_again(seen, silent, containers, {*SERVERS})] == expected


def test_a_failed_job_waits_for_no_score(stage: Stage) -> None:
    """A task that is not informed of the end is waited for as long as servers take, and not
    longer."""
    failed = Life((*READY, ends(3.0, 5, "failed", "boom")))
    began = stage.clock.time()
    outcome = stage.up(
        {"chief-0": [failed], "worker-1": [Life((), deaf=True)]}, deadline={"evaluator_grace": 600}
    )
    assert (outcome.reason, outcome.message) == ("failed", "boom")
    assert stage.clock.time() - began < 30
