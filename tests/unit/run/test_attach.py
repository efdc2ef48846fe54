"""Clusters whose `up` was killed: `attach` continues them."""

from __future__ import annotations

import os

import pytest

from cluster_kit.errors import EngineError, HostError
from cluster_kit.run import launch
from cluster_kit.run.history import run_named
from cluster_kit.run.outcome import Outcome
from cluster_kit.run.take_down import take_down
from tests.fakes.acting import LEADS, Life, dies, ends, prints, says
from tests.fakes.stage import Stage, close
from tests.unit.run.reason_stories import STORIES, Acting


class Killed(BaseException):
    """Raised when the kit's process is killed: nothing further of it runs."""


def up_is_killed(
    stage: Stage, patch: pytest.MonkeyPatch, acting: Acting | None = None, *, resume: bool = False
) -> None:
    """Run `up`, which is killed at the stage's moment."""
    with patch.context() as here, pytest.raises(Killed):
        here.setattr(launch, "fail", lambda *_: None)
        stage.up(acting, resume=resume)


def killed_while_it_starts(stage: Stage, patch: pytest.MonkeyPatch) -> None:
    """Run `up`, and kill it when the chief's container is to be started."""

    def kill(name: str) -> None:
        if name == "start chief-0":
            raise Killed

    stage.docker.on_call = kill
    up_is_killed(stage, patch)


def killed(
    stage: Stage, patch: pytest.MonkeyPatch, after_s: float, acting: Acting | None = None
) -> None:
    """Run `up`, and kill it this many seconds after its start."""

    def kill() -> None:
        raise Killed

    stage.clock.at(after_s, kill)
    up_is_killed(stage, patch, acting)
    assert not stage.directory.outcome.exists()
    assert len(stage.engine.boxes) == 5


def without_timings(outcome: Outcome) -> dict[str, object]:
    facts = outcome.as_json()
    return {key: value for key, value in facts.items() if key not in ("timings_s", "run", "id")}


def test_another_users_run_is_left_to_that_user(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.detach()
    run = stage.directory
    close(run, monkeypatch)
    with pytest.raises(HostError, match=f"{run.path} belongs to .*, who alone may look") as refused:
        stage.attach()
    assert "sudo -u" in refused.value.hint
    with pytest.raises(HostError, match="who alone may look into it"):
        run_named(str(run.path), stage.workspace)
    with pytest.raises(HostError, match="demo is already up: chief-0"):
        stage.up()
    stage.clock.pass_by(300)
    with pytest.raises(HostError, match="demo has ended, and was neither judged nor saved"):
        stage.up()
    assert len(stage.engine.boxes) == 5
    assert take_down(stage.host, stage.engine, "demo") == 5
    assert stage.is_clean()


@pytest.mark.parametrize("after_s", [0.2, 0.9, 1.7, 3.4, 3.8])
def test_a_run_whose_up_was_killed_ends_as_if_nothing_had_happened(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, after_s: float
) -> None:
    usual = stage.up()
    stage.clock.pass_by(60)
    killed(stage, monkeypatch, after_s)
    outcome = stage.attach()
    assert outcome.success
    assert without_timings(outcome) == without_timings(usual)
    assert outcome.run == str(stage.directory.path)
    assert outcome.timings_s.keys() >= usual.timings_s.keys() - {"up"}
    assert outcome.timings_s["first_step"] == usual.timings_s["first_step"]
    assert outcome.timings_s["train"] == usual.timings_s["train"]
    assert len(stage.events()) == 15
    assert stage.saved() == outcome.as_json()
    assert "100 training images" in (stage.directory.logs / "chief-0.log").read_text()
    assert stage.view.differences == []
    assert stage.is_clean()


@pytest.mark.parametrize("forgotten", [False, True], ids=["remembered", "forgotten"])
def test_a_job_that_has_ended_meanwhile_is_judged(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, forgotten: bool
) -> None:
    """The engine stores only its last 256 events: on a busy machine, none of these."""
    killed(stage, monkeypatch, 1.0)
    stage.clock.pass_by(3600)
    if forgotten:
        stage.engine.forget()
    outcome = stage.attach()
    assert (outcome.success, outcome.exit_code, outcome.reason) == (True, 0, "finished")
    assert [task.exit_code for task in outcome.tasks] == [0] * 5
    assert outcome.timings_s["train"] == pytest.approx(2.0, abs=0.01)
    assert stage.is_clean()


JUDGED_LATE = [  # except for a crash that only the engine's events show
    "the leader's program raises",
    "a worker crashes, comes back, and the job succeeds",
    "the evaluator raises as often as it may",
    "a task does not see its GPU",
    "somebody stops the leader",
]


@pytest.mark.parametrize("name", JUDGED_LATE)
@pytest.mark.parametrize("forgotten", [False, True], ids=["remembered", "forgotten"])
def test_the_verdict_on_a_job_that_has_ended_meanwhile_is_the_same(
    stage: Stage, name: str, forgotten: bool
) -> None:
    story = STORIES[name]
    stage.detach(story.acting, **story.overrides)
    stage.clock.pass_by(300)
    if forgotten:
        stage.engine.forget()
    outcome = stage.attach()
    assert (outcome.reason, outcome.exit_code, outcome.blame) == (
        story.reason, story.code, story.blame,
    )  # fmt: skip
    assert story.message in outcome.message
    tasks = {task.name: task for task in outcome.tasks}
    assert {name: tasks[name].restarts for name in story.restarts} == story.restarts
    assert stage.view.differences == []
    assert stage.is_clean()


LOST_TWICE: Acting = {
    "ps-0": [Life((says(0.2, "ready"), dies(1.0))), Life((says(0.2, "ready"), dies(1.0))),
             Life((says(0.2, "ready"),))],
    "worker-1": [Life((says(0.2, "start", attempt=1), ends(0.9, 1, "failed", "E: no"))),
                 Life((says(0.2, "start", attempt=1),))],
    "chief-0": [Life((says(0.1, "start", attempt=1), says(0.4, "ready"),
                      ends(20.0, 0, "finished")))],
}  # fmt: skip


@pytest.mark.parametrize("noted", [True, False], ids=["starts noted", "nothing noted"])
def test_events_that_a_busy_engine_has_forgotten_are_reconstructed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, noted: bool
) -> None:
    """Also if a second `attach` continues, to which the engine reports all events."""
    usual = stage.up(LOST_TWICE)
    expected = story(stage)
    stage.clock.pass_by(60)
    stage.detach(LOST_TWICE)
    assert [event["action"] for event in stage.events()] == ["start"] * 5
    if not noted:
        (stage.directory.path / "events.jsonl").unlink()
    stage.clock.pass_by(10)
    stage.engine.forget()

    def kill() -> None:
        raise Killed

    stage.clock.at(5.0, kill)
    with monkeypatch.context() as here, pytest.raises(Killed):
        here.setattr(launch, "fail", lambda *_: None)
        stage.attach()
    stage.engine.remember()
    outcome = stage.attach()
    assert outcome.success
    restarts = {task.name: task.restarts for task in outcome.tasks}
    assert restarts == {task.name: task.restarts for task in usual.tasks}
    assert (restarts["ps-0"], restarts["worker-1"]) == (2, 1)
    assert story(stage) == expected
    assert stage.view.differences == []


def story(stage: Stage) -> dict[str, list[str]]:
    """Returns what each container did in the newest run, as it was saved."""
    events = sorted(stage.events(), key=lambda event: float(event["time"]))
    tasks = sorted({event["task"] for event in events})
    return {
        task: [e["action"] for e in events if e["task"] == task and e["action"] in ("start", "die")]
        for task in tasks
    }


def test_a_leader_that_crashed_meanwhile_is_restarted(stage: Stage) -> None:
    stage.detach({"chief-0": [Life((says(0.1, "start", attempt=1), dies(1.0))), LEADS]})
    stage.clock.pass_by(5)
    outcome = stage.attach()
    assert outcome.success
    assert {task.name: task.restarts for task in outcome.tasks}["chief-0"] == 1


def test_a_restarted_leader_counts_the_earlier_restarts(stage: Stage) -> None:
    crash = Life((says(0.1, "start", attempt=1), dies(1.0)))
    stage.detach({"chief-0": [crash]}, retries=1)
    stage.clock.pass_by(2)
    leader = next(box for box in stage.engine.boxes.values() if box.leads)
    stage.engine.start(leader)
    stage.clock.pass_by(2)
    outcome = stage.attach()
    assert (outcome.reason, outcome.blame) == ("failed", "chief-0")
    assert leader.lives == 2


def test_a_leader_whose_whole_job_has_ended_is_not_restarted(stage: Stage) -> None:
    lost = ends(0.0, 0, "leader-lost", "gone for 30 s")
    servers = {task: [Life((says(0.2, "ready"), ends(31.0, 0, "leader-lost")), last=lost)]
               for task in ("ps-0", "worker-0", "worker-1")}  # fmt: skip
    stage.detach({"chief-0": [Life((says(0.1, "start", attempt=1), dies(1.0))), LEADS], **servers})
    stage.clock.pass_by(60)
    outcome = stage.attach()
    assert (outcome.reason, outcome.blame) == ("failed", "chief-0")
    assert "killed by signal 9" in outcome.message


def test_an_up_that_was_killed_while_it_started_containers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_while_it_starts(stage, monkeypatch)
    with pytest.raises(EngineError, match="chief-0 was never started"):
        stage.attach()
    assert (stage.saved()["reason"], stage.saved()["exit_code"]) == ("engine", 4)
    assert stage.is_clean()


def test_compose_may_still_be_starting_containers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_while_it_starts(stage, monkeypatch)
    for box in stage.engine.boxes.values():
        if box.state == "created":
            stage.clock.at(6.0, lambda box=box: stage.engine.start(box))  # type: ignore[misc]
    assert stage.attach().success


def test_reports_of_tasks_are_read_from_then_on(stage: Stage) -> None:
    stage.detach({"chief-0": [Life((*LEADS.steps[:2], prints(0.5, "early"), prints(2.0, "late"),
                                    ends(3.0, 0, "finished")))]})  # fmt: skip
    stage.clock.pass_by(1.0)
    assert stage.attach().success
    stage.engine.finish()
    assert ("chief-0", "late") in stage.view.lines
    assert ("chief-0", "early") not in stage.view.lines


def test_the_end_of_a_resumed_run_counts_not_that_of_the_earlier_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.up({"chief-0": [Life((ends(1.0, 1, "failed", "E: no"),))]})
    os.utime(stage.directory.outcome, (stage.clock.time(), stage.clock.time()))
    stage.clock.pass_by(60)

    def kill() -> None:
        raise Killed

    stage.clock.at(1.0, kill)
    up_is_killed(stage, monkeypatch, resume=True)
    assert stage.saved()["reason"] == "failed"
    assert stage.attach().success
    assert stage.saved()["success"]
