"""restart, stop and start of tasks that are watched, and of those that nobody watches."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_kit import labels
from cluster_kit.errors import EngineError, HostError
from cluster_kit.observe import asked
from cluster_kit.run import again
from cluster_kit.run.take_down import take_down
from tests.fakes.acting import LEADS, Life, dies, ends, says
from tests.fakes.box import Box
from tests.fakes.stage import NAME, Stage

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
    return again.restart(stage.engine, box(stage, task).shown())


def test_a_worker_is_restarted_and_nobody_calls_it_a_crash(stage: Stage) -> None:
    addresses: list[str] = []

    def ask() -> None:
        addresses.append(box(stage, "worker-1").shown().ip)
        assert restart(stage, "worker-1") == ("worker-1",)
        addresses.append(box(stage, "worker-1").shown().ip)

    do(stage, 2.0, ask)
    outcome = stage.up()
    assert (outcome.success, outcome.blame) == (True, None)
    assert {t.name: t.restarts for t in outcome.tasks}["worker-1"] == 1
    (note,) = outcome.notes
    assert note.startswith("worker-1 was restarted at ")
    assert "a person asked for it" in note
    assert note in stage.view.phases
    assert addresses[0] == addresses[1]
    assert stage.is_clean()


def test_with_the_leader_all_tasks_are_restarted_and_the_run_is_watched_on(stage: Stage) -> None:
    do(stage, 2.0, lambda: restart(stage, "chief-0"))
    outcome = stage.up(ACTING)
    assert outcome.success, outcome.message
    assert {t.restarts for t in outcome.tasks} == {1}
    (note,) = outcome.notes
    assert note.startswith("all tasks were restarted at ")
    assert [line for _, line in stage.view.lines] == ["100 training images"]


def test_retries_count_anew_after_a_restart_on_request(stage: Stage) -> None:
    crash = Life((*BEGINS, dies(1.0)))
    do(stage, 6.5, lambda: again.stop(stage.engine, NAME))
    do(stage, 7.5, lambda: again.start(stage.engine, NAME))
    acting = {"chief-0": [crash, crash, LONG, crash, crash, LEADS]}
    outcome = stage.up(acting)
    assert outcome.success, outcome.message
    assert {t.name: t.restarts for t in outcome.tasks}["chief-0"] == 5


def test_a_run_that_fails_over_a_restart_says_that_a_person_asked(stage: Stage) -> None:
    failed = ends(2.5, 1, "failed", "worker-1 was lost", "worker-1")
    do(stage, 2.0, lambda: restart(stage, "worker-1"))
    outcome = stage.up({"chief-0": [Life((*BEGINS, failed))], "worker-1": [TRAINS, Life(())]})
    assert (outcome.reason, outcome.blame) == ("failed", "worker-1")
    assert "worker-1 was lost (worker-1 was restarted at" in outcome.message
    assert "by `cluster-kit restart`: a person asked for it)" in outcome.message


def test_a_task_that_dies_of_a_restart_is_not_the_first_failure(stage: Stage) -> None:
    deaf = Life(TRAINS.steps, stubborn=True)  # it is killed after its grace: 137, not 143
    failed = ends(2.5, 1, "failed", "")
    do(stage, 2.0, lambda: restart(stage, "worker-1"))
    outcome = stage.up({"chief-0": [Life((*BEGINS, failed))], "worker-1": [deaf]})
    assert (outcome.blame, outcome.exit_code) == ("chief-0", 5)


def test_a_stopped_cluster_is_waited_for_and_watched_on(stage: Stage) -> None:
    """Longer than every deadline: the time in which it is stopped is nobody's."""
    ips = {}

    def stop() -> None:
        ips.update({b.task: b.shown().ip for b in stage.engine.boxes.values()})
        assert again.stop(stage.engine, NAME)
        assert not again.stop(stage.engine, NAME)
        assert {b.state for b in stage.engine.boxes.values()} == {"exited"}

    def start() -> None:
        assert again.start(stage.engine, NAME)
        assert not again.start(stage.engine, NAME)
        assert ips == {b.task: b.shown().ip for b in stage.engine.boxes.values()}

    do(stage, 2.0, stop)
    do(stage, 700.0, start)
    outcome = stage.up(ACTING, deadline={"start": "10s", "job": "60s"})
    assert outcome.success, outcome.message
    assert outcome.notes[0].startswith("the cluster was stopped at ")
    assert outcome.notes[0].endswith("by `cluster-kit stop`, and started 698 s later")
    assert any("the run is not over, `cluster-kit start`" in said for said in stage.view.phases)
    assert "the cluster was started again: the run is watched on" in stage.view.phases
    assert stage.view.differences == []
    assert stage.is_clean()


@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("attached_first", [False, True])
def test_nobody_need_watch_it(stage: Stage, forgotten: bool, attached_first: bool) -> None:
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    assert again.stop(stage.engine, NAME)
    stage.clock.pass_by(3600)
    if forgotten:
        stage.engine.forget()
    if attached_first:
        do(stage, 30.0, lambda: again.start(stage.engine, NAME))
    else:
        again.start(stage.engine, NAME)
    outcome = stage.attach()
    assert outcome.success, outcome.message
    assert "by `cluster-kit stop`, and started" in outcome.notes[0]
    assert stage.is_clean()


def test_a_stopped_cluster_is_neither_replaced_nor_judged_but_can_be_removed(stage: Stage) -> None:
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    again.stop(stage.engine, NAME)
    with pytest.raises(HostError, match="the cluster demo is stopped") as refused:
        stage.up()
    assert "`cluster-kit start demo` goes on with it" in refused.value.cure
    assert not stage.directory.outcome.exists()
    assert take_down(stage.engine, NAME) == 5
    assert (stage.saved()["reason"], stage.saved()["exit_code"]) == ("stopped", 7)
    assert "and not started again" in stage.saved()["notes"][0]
    assert stage.is_clean()


def test_whoever_watches_a_stopped_cluster_judges_it_when_it_is_removed(stage: Stage) -> None:
    do(stage, 2.0, lambda: again.stop(stage.engine, NAME))

    def down() -> None:
        containers = stage.engine.seen(NAME)
        asked.write(containers[0].output, asked.DOWN, [one.name for one in containers])

    do(stage, 50.0, down)
    assert stage.up(ACTING).reason == "stopped"
    assert stage.is_clean()


def test_ctrl_c_ends_a_stopped_cluster_as_any_other(stage: Stage) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    do(stage, 2.0, lambda: again.stop(stage.engine, NAME))
    stage.clock.at(50.0, interrupt)
    assert stage.up(ACTING).reason == "interrupted"
    assert stage.is_clean()


def test_what_has_ended_is_not_started(stage: Stage) -> None:
    with pytest.raises(HostError, match="no container of the cluster demo is there"):
        again.stop(stage.engine, NAME)
    stage.detach()
    stage.clock.pass_by(10)
    for call in (again.stop, again.start):
        with pytest.raises(HostError, match=r"has ended \(chief-0 with exit code 0\)") as refused:
            call(stage.engine, NAME)
        assert "cluster-kit attach demo" in refused.value.cure
    with pytest.raises(HostError, match="has ended"):
        restart(stage, "worker-1")


def test_a_start_that_the_engine_refuses_leaves_the_cluster_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(again, "AT_ONCE", 1)
    stage.engine.on_call = lambda name: stage.clock.pass_by(0.1 * (name == "start_again"))
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    again.stop(stage.engine, NAME)
    with pytest.raises(HostError, match="demo is stopped"):
        restart(stage, "worker-1")
    stage.engine.refuses["worker-1"] = "no such device"
    with pytest.raises(EngineError, match="no such device"):
        again.start(stage.engine, NAME)
    assert {one.state for one in stage.engine.boxes.values()} == {"exited"}
    stage.engine.refuses.clear()
    stage.clock.pass_by(1)
    assert again.start(stage.engine, NAME)
    assert stage.attach().success


def test_a_gpu_that_another_cluster_has_by_now_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    again.stop(stage.engine, NAME)
    held = box(stage, "worker-1")
    held.service = {**held.service, "labels": {**held.mark, labels.GPUS: "1"}}
    monkeypatch.setattr(stage.engine, "gpus_taken", lambda: (("1", "other"), ("0", NAME)))
    with pytest.raises(HostError, match="the GPU 1 of worker-1 is held by the cluster other now"):
        again.start(stage.engine, NAME)
    monkeypatch.undo()


def test_nothing_is_done_that_cannot_be_told(stage: Stage) -> None:
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    host = stage.directory.progress / "host.jsonl"
    host.mkdir()
    with pytest.raises(HostError, match="cannot be written, by which it is told"):
        again.stop(stage.engine, NAME)
    assert {one.state for one in stage.engine.boxes.values()} == {"running"}


@pytest.mark.parametrize("line", ["{", '{"event": "asked", "time": 1}', '{"tasks": 3}', "[]"])
def test_what_else_stands_in_the_file_is_ignored(stage: Stage, line: str) -> None:
    def scribble() -> None:
        with (stage.directory.progress / "host.jsonl").open("a") as file:
            file.write(f"{line}\n" + json.dumps({"event": "asked", "time": 9e9, "tasks": "all"}))
            file.write("\n")

    do(stage, 1.0, scribble)
    outcome = stage.up()
    assert (outcome.success, outcome.notes) == (True, [])


def test_a_resumed_run_knows_nothing_of_what_was_asked_before(stage: Stage, tmp_path: Path) -> None:
    do(stage, 2.0, lambda: restart(stage, "worker-1"))
    assert stage.up().notes
    stage.clock.pass_by(60)
    assert stage.up(resume=True).notes == []
