"""An engine that is lost during a run: reported at once, waited for, and the run judged
correctly."""

from __future__ import annotations

import pytest

from cluster_kit.errors import EngineError
from tests.fakes.acting import LEADS, Life, dies, ends, prints, says
from tests.fakes.stage import Stage

LONG = Life((*LEADS.steps[:4], prints(20.0, "late"), says(29.0, "metrics", test_accuracy=0.9),
             ends(30.0, 0, "finished")))  # fmt: skip
GONE, BACK = (
    "the Docker engine does not answer: it is waited for",
    "the Docker engine answers again",
)


def told_at(stage: Stage, words: str) -> list[float]:
    """Records the times at which the view shows these words."""
    times: list[float] = []
    phase_text = stage.view.phase

    def phase(text: str) -> None:
        if text.startswith(words):
            times.append(stage.clock.time())
        phase_text(text)

    stage.view.phase = phase  # type: ignore[method-assign]
    return times


def lose(stage: Stage, at: float, back: float | None = None, *, ends: bool = False) -> float:
    """Lose the engine, and bring it back, after these numbers of seconds; returns when it is
    lost."""
    stage.clock.at(at, stage.engine.lose)
    if back is not None:
        stage.clock.at(back, lambda: stage.engine.come_back(ends=ends))
    return stage.clock.time() + at


def test_an_engine_that_comes_back_has_no_effect(stage: Stage) -> None:
    gone, back = told_at(stage, GONE), told_at(stage, BACK)
    lost = lose(stage, 2.5, 12.5)
    outcome = stage.up({"chief-0": [LONG]})
    stage.engine.finish()
    assert outcome.success
    assert [task.restarts for task in outcome.tasks] == [0] * 5
    assert [task.exit_code for task in outcome.tasks] == [0] * 5
    assert 0 < gone[0] - lost < 5.0
    assert 10.0 < back[0] - lost < 15.0
    assert (len(gone), len(back)) == (1, 1)
    assert stage.saved() == outcome.as_json()
    assert ("chief-0", "late") in stage.view.lines
    assert stage.is_clean()


def test_reports_of_tasks_are_shown_while_the_engine_is_lost(stage: Stage) -> None:
    lose(stage, 2.5, 20.0)
    steps: list[int | None] = []
    shown = stage.view.update

    def update(seen: object) -> None:
        shown(seen)  # type: ignore[arg-type]
        if stage.engine.lost:
            steps.append(seen.tasks["chief-0"].step)  # type: ignore[attr-defined]

    stage.view.update = update  # type: ignore[method-assign]
    stage.up(
        {
            "chief-0": [
                Life((*LEADS.steps[:4], says(9.0, "step", step=77), ends(30.0, 0, "finished")))
            ]
        }
    )
    assert 77 in steps


def test_a_job_that_succeeds_while_the_engine_is_lost(stage: Stage) -> None:
    lose(stage, 2.5, 40.0)
    outcome = stage.up()
    assert (outcome.success, outcome.reason) == (True, "finished")
    assert [task.exit_code for task in outcome.tasks] == [0] * 5
    assert outcome.timings_s["train"] == pytest.approx(2.0, abs=0.01)
    assert stage.is_clean()


def test_a_job_that_fails_while_the_engine_is_lost(stage: Stage) -> None:
    lose(stage, 1.2, 40.0)
    outcome = stage.up({"chief-0": [Life((*LEADS.steps[:4], ends(2.0, 1, "failed", "E: no")))]})
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("failed", 5, "chief-0")
    assert outcome.message == "E: no"
    assert stage.is_clean()


def test_the_evaluator_scores_while_the_engine_is_lost(stage: Stage) -> None:
    scores = Life((says(0.1, "start", attempt=1),), after_job_s=6.0)
    lose(stage, 3.8, 30.0)
    outcome = stage.up(
        {"evaluator-0": [scores]}, deadline={"evaluator_grace": 5.0, "engine": 120.0}
    )
    assert outcome.success
    assert stage.is_clean()


@pytest.mark.parametrize("told", [False, True])
def test_an_engine_that_ends_the_containers_when_it_comes_back(stage: Stage, told: bool) -> None:
    """Without live-restore each task is stopped, and reports it; the engine may report it, too."""
    lose(stage, 2.5, 10.0, ends=True)
    if told:
        stage.engine.forget = lambda: None  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="has ended chief-0 with it") as ended:
        stage.up({"chief-0": [LONG]})
    assert "--resume" in ended.value.hint
    saved = stage.saved()
    assert (saved["reason"], saved["exit_code"], saved["success"]) == ("engine", 4, False)
    assert "TensorFlow server ready" in (stage.directory.logs / "ps-0.log").read_text()
    assert stage.is_clean()


@pytest.mark.parametrize(("limit", "given"), [(60.0, {}), (20.0, {"engine": 20.0})])
def test_an_engine_that_does_not_come_back(
    stage: Stage, limit: float, given: dict[str, float]
) -> None:
    lost = lose(stage, 2.5)
    with pytest.raises(EngineError, match="stopped in the middle of the run") as given_up:
        stage.up({"chief-0": [LONG]}, deadline=given)
    assert limit <= stage.clock.time() - lost < limit + 5.0
    assert "cluster-kit attach NAME" in given_up.value.hint
    saved = stage.saved()
    assert (saved["reason"], saved["exit_code"]) == ("engine", 4)
    assert saved["timings_s"]["first_step"] == 1.0
    assert ("test_accuracy" in saved["metrics"]) == (limit > 40)
    assert len(stage.events()) == 10


def test_attach_continues_when_the_engine_is_back(stage: Stage) -> None:
    lose(stage, 2.5)
    with pytest.raises(EngineError):
        stage.up({"chief-0": [LONG]}, deadline={"engine": 5.0})
    assert len(stage.events()) == 10
    stage.engine.come_back()
    outcome = stage.attach()
    assert outcome.success
    assert stage.saved()["success"]
    assert len(stage.events()) == 15
    assert stage.is_clean()


def test_an_interrupt_while_the_engine_is_lost(stage: Stage) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    lose(stage, 2.5)
    stage.clock.at(8.0, interrupt)
    with pytest.raises(EngineError, match=r"the run ended \(interrupted\)") as told:
        stage.up({"chief-0": [LONG]})
    assert "cluster-kit down NAME" in told.value.hint
    assert (stage.saved()["reason"], stage.saved()["exit_code"]) == ("interrupted", 130)


def test_if_the_engine_cannot_remove_a_run_the_error_says_how_to_remove_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This happens if the engine is busy with thousands of processes."""

    def refuses(*_: str) -> int:
        raise EngineError("the engine refused: cannot stop container", "run it again")

    monkeypatch.setattr(stage.engine, "remove", refuses)
    with pytest.raises(EngineError, match="not everything was saved and removed") as told:
        stage.up()
    assert told.value.hint.startswith("`cluster-kit down demo` removes what is left; ")


def test_a_hanging_engine_is_reported_and_waited_for(stage: Stage) -> None:
    """Its streams stay open, and nothing arrives."""
    gone, back = told_at(stage, GONE), told_at(stage, BACK)
    began = stage.clock.time()
    stage.clock.at(2.5, lambda: setattr(stage.engine, "hangs", True))
    stage.clock.at(12.5, lambda: setattr(stage.engine, "hangs", False))
    outcome = stage.up({"chief-0": [LONG]})
    assert outcome.success
    assert (len(gone), len(back)) == (1, 1)
    assert gone[0] - began - 2.5 < 5.0
    assert [task.restarts for task in outcome.tasks] == [0] * 5
    assert len(stage.events()) == 15


def test_an_engine_that_is_lost_twice(stage: Stage) -> None:
    gone = told_at(stage, GONE)
    lose(stage, 2.5, 8.0)
    lose(stage, 9.0, 15.0)
    outcome = stage.up({"chief-0": [LONG]})
    assert outcome.success
    assert [task.restarts for task in outcome.tasks] == [0] * 5
    assert len(gone) == 2
    assert stage.is_clean()


def test_a_task_that_crashes_while_the_engine_is_lost_is_restarted(stage: Stage) -> None:
    """The kit restarts the leader, and the engine a worker, when the engine is back."""
    lose(stage, 1.2, 10.0)
    outcome = stage.up({
        "chief-0": [Life((says(0.1, "start", attempt=1), dies(2.0))), LEADS],
        "worker-1": [Life((says(0.2, "ready"), dies(3.0))), Life((says(0.1, "ready"),))],
    })  # fmt: skip
    tasks = {task.name: task for task in outcome.tasks}
    assert outcome.success
    assert (tasks["chief-0"].restarts, tasks["worker-1"].restarts) == (1, 1)


def test_an_engine_that_is_stopped_and_comes_back(stage: Stage) -> None:
    """It first stops the containers, and reports it, but then does not answer any more."""
    gone = told_at(stage, GONE)
    began = stage.clock.time()
    stage.clock.at(2.5, stage.engine.shut_down)
    stage.clock.at(12.5, stage.engine.come_back)
    with pytest.raises(EngineError, match="has ended chief-0 with it"):
        stage.up({"chief-0": [LONG]})
    assert 0 < gone[0] - began - 2.5 < 5.0
    saved = stage.saved()
    assert (saved["reason"], saved["exit_code"], saved["blame"]) == ("engine", 4, None)
    assert saved["metrics"]["validation_accuracy"] == 0.8
    assert "TensorFlow server ready" in (stage.directory.logs / "ps-0.log").read_text()
    assert stage.is_clean()


def test_an_engine_that_is_stopped_and_does_not_come_back(stage: Stage) -> None:
    stage.clock.at(2.5, stage.engine.shut_down)
    with pytest.raises(EngineError, match="did not come back within 60 s"):
        stage.up({"chief-0": [LONG]})
    assert (stage.saved()["reason"], stage.saved()["exit_code"]) == ("engine", 4)
