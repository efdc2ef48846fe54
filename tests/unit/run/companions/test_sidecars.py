"""Sidecars of a run: started, saved and ended with it; a crash is reported."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.errors import EngineError, KitError
from cluster_kit.run import lifecycle
from cluster_kit.run.take_down import take_down
from tests.fakes.acting import BESIDE, LEADS, Life, dies, ends, prints, runs_out_of_memory, says
from tests.fakes.stage import NAME, Stage
from tests.unit.run.asking import LONG, TRAINS, box, do

CACHE = {"image": "redis:7"}
NEEDED = {**CACHE, "required": True}
CRASH = Life((prints(0.2, "no space left"), dies(1.0, 3)))

WAITS = Life((ends(60.0, 6, "start-deadline", "the sidecar web is not ready after 60 s"),))
"""A leader that waits for a sidecar until its start deadline."""


def test_sidecars_start_first_are_saved_and_end_with_the_job(stage: Stage) -> None:
    outcome = stage.up(sidecar={"cache": CACHE})
    assert (outcome.success, outcome.notes) == (True, [])
    assert "cache" not in {task.name for task in outcome.tasks}
    assert "starting 6 containers" in stage.view.phases
    assert "listening" in (stage.directory.logs / "cache.log").read_text()
    assert stage.is_clean() and not stage.engine.boxes


def test_a_crash_is_reported_once_and_is_a_note(stage: Stage) -> None:
    outcome = stage.up({"cache": [CRASH], "chief-0": [_later(6.0)]}, sidecar={"cache": CACHE})
    assert (outcome.success, outcome.blame) == (True, None)
    words = "the sidecar cache has ended with exit code 3"
    assert stage.view.phases.count(words) == 1
    assert outcome.notes == [f"{words}; its log is logs/cache.log"]


def test_a_sidecar_that_finished_is_no_crash(stage: Stage) -> None:
    outcome = stage.up({"cache": [Life((dies(0.5, 0),))]}, sidecar={"cache": NEEDED})
    assert (outcome.success, outcome.notes) == (True, [])


@pytest.mark.parametrize(
    ("life", "words"),
    [(CRASH, "exit code 3, and"), (Life((runs_out_of_memory(1.0),)), "137: out of memory, and")],
)
def test_the_job_ends_if_a_required_sidecar_crashes(stage: Stage, life: Life, words: str) -> None:
    acting = {"cache": [life], "chief-0": [LONG]}
    outcome = stage.up(acting, sidecar={"cache": NEEDED, "other": CACHE})
    assert (outcome.success, outcome.exit_code, outcome.reason) == (False, 5, "failed")
    assert outcome.blame == "cache" and words in outcome.message
    assert outcome.timings_s["total"] < 10
    assert outcome.notes == []
    assert stage.is_clean()
    assert stage.saved()["blame"] == "cache"


@pytest.mark.parametrize("exit_code", [0, 2])
def test_the_job_ends_if_a_sidecar_ends_before_it_is_ready(stage: Stage, exit_code: int) -> None:
    acting = {"web": [Life((dies(0.5, exit_code),))], "chief-0": [WAITS]}
    outcome = stage.up(acting, sidecar={"web": {**CACHE, "ready": 8080}})
    assert (outcome.exit_code, outcome.reason, outcome.blame) == (5, "failed", "web")
    assert outcome.message == f"the sidecar web ended with {exit_code} before it was ready"
    assert outcome.timings_s["total"] < 10
    assert outcome.notes == []
    assert stage.is_clean()


def test_a_sidecar_that_is_not_ready_at_the_start_deadline_is_to_blame(stage: Stage) -> None:
    late = says(1.0, "end", exit_code=6, reason="start-deadline", message="late", tasks=["web"])
    acting = {"chief-0": [Life((late, dies(1.1, 6)))]}
    outcome = stage.up(acting, sidecar={"web": {**CACHE, "ready": 8080}})
    assert (outcome.exit_code, outcome.reason, outcome.blame) == (6, "start-deadline", "web")


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize(
    ("end", "exit_code", "reason", "message"),
    [
        ([dies(1.0, 3)], 5, "failed", "the sidecar web ended with 3 before it was ready"),
        ([], 6, "start-deadline", "the sidecar web was not ready within 20 s: "),
    ],
    ids=["ends", "never ready"],
)
def test_a_sidecar_whose_command_fails_is_to_blame(
    stage: Stage, end: list[Any], exit_code: int, reason: str, message: str, detached: bool
) -> None:
    stage.docker.health = "starting"
    sidecar = {"web": {**CACHE, "ready": ["check"]}, "other": CACHE}
    acting = {"web": [Life((prints(0.0, "no configuration"), *end))]}
    began = stage.clock.monotonic()
    if detached:
        stage.clock.settle = lambda: None  # no one listens to the engine's events
        with pytest.raises(KitError, match="the sidecar web") as caught:
            stage.detach(acting, sidecar=sidecar, deadline={"start": 20})
        assert (caught.value.exit_code, caught.value.run) == (exit_code, str(stage.directory.path))
    else:
        stage.up(acting, sidecar=sidecar, deadline={"start": 20})
    outcome = stage.saved()
    assert (outcome["exit_code"], outcome["reason"]) == (exit_code, reason)
    assert outcome["blame"] == "web" and outcome["message"].startswith(message)
    assert outcome["last_words"] == "no configuration"
    assert stage.clock.monotonic() - began < (5 if end else 25)
    assert stage.is_clean()


def test_tasks_start_when_the_command_of_a_sidecar_has_succeeded(stage: Stage) -> None:
    outcome = stage.up(sidecar={"web": {**CACHE, "ready": ["check"]}, "other": CACHE})
    assert outcome.success and outcome.notes == []
    assert len(stage.docker.ups) == 2, "first the sidecar, then all others"


@pytest.mark.parametrize("exit_code", [0, 2])
def test_a_sidecar_may_end_when_the_program_has_started(stage: Stage, exit_code: int) -> None:
    acting = {"web": [Life((dies(1.0, exit_code),))], "chief-0": [_later(6.0)]}
    outcome = stage.up(acting, sidecar={"web": {**CACHE, "ready": 8080}})
    assert outcome.success, outcome.message


def test_its_last_output_is_in_the_outcome(stage: Stage) -> None:
    acting = {"cache": [CRASH], "chief-0": [LONG]}
    assert "no space left" in stage.up(acting, sidecar={"cache": NEEDED}).last_words


def test_a_program_that_fails_right_after_the_sidecar_is_not_blamed(stage: Stage) -> None:
    begins = (says(0.1, "start", attempt=1), ends(1.2, 1, "failed", "ConnectionRefusedError"))
    acting = {"cache": [CRASH], "chief-0": [Life(begins)]}
    outcome = stage.up(acting, sidecar={"cache": NEEDED})
    assert (outcome.blame, outcome.reason) == ("cache", "failed")


def test_a_program_that_fails_by_itself_is_blamed(stage: Stage) -> None:
    begins = (says(0.1, "start", attempt=1), ends(0.5, 1, "failed", "mine"))
    outcome = stage.up({"chief-0": [Life(begins)]}, sidecar={"cache": NEEDED})
    assert outcome.blame == "chief-0" and outcome.message.endswith("mine")


def test_sidecars_are_not_kept_with_the_containers(stage: Stage) -> None:
    stage.up(keep=True, sidecar={"cache": CACHE})
    assert box(stage, "cache").state == "exited"
    assert stage.engine.remove(NAME) == 6


def test_a_restart_is_no_crash(stage: Stage) -> None:
    deaf = Life(BESIDE.steps, stubborn=True)  # killed after its grace: 137
    one = {"cache": [deaf], "chief-0": [_later(6.0)]}
    do(stage, 2.0, lambda: lifecycle.restart(stage.host, stage.engine, box(stage, "cache").shown()))
    outcome = stage.up(one, sidecar={"cache": NEEDED})
    assert (outcome.success, outcome.notes) == (True, [])


def test_sidecars_stop_and_start_with_the_cluster(stage: Stage) -> None:
    states = []

    def look() -> None:
        states.append(box(stage, "cache").state)

    deaf = Life(BESIDE.steps, stubborn=True)
    do(stage, 2.0, lambda: lifecycle.stop(stage.host, stage.engine, NAME))
    do(stage, 40.0, look)
    do(stage, 60.0, lambda: lifecycle.start(stage.host, stage.engine, NAME))
    do(stage, 61.0, look)
    acting = {"chief-0": [LONG, LEADS], "worker-1": [TRAINS], "cache": [deaf]}
    outcome = stage.up(acting, sidecar={"cache": NEEDED})
    assert outcome.success, outcome.message
    assert states == ["exited", "running"]
    (note,) = outcome.notes
    assert note.startswith("the cluster was stopped")


def test_sidecars_restart_with_the_leader(stage: Stage) -> None:
    do(
        stage,
        2.0,
        lambda: lifecycle.restart(stage.host, stage.engine, box(stage, "chief-0").shown()),
    )
    acting = {"chief-0": [LONG, LEADS], "worker-1": [TRAINS]}
    assert stage.up(acting, sidecar={"cache": NEEDED}).success


def test_down_ends_sidecars(stage: Stage) -> None:
    stage.detach({"chief-0": [LONG]}, sidecar={"cache": CACHE})
    assert take_down(stage.host, stage.engine, NAME) == 6
    assert not stage.engine.boxes


def test_left_over_sidecars_are_removed_before_the_next_run(stage: Stage) -> None:
    stage.detach({"chief-0": [LONG]}, sidecar={"cache": CACHE})
    for one in list(stage.engine.boxes.values()):
        if not one.sidecar:
            del stage.engine.boxes[one.id]
    stage.engine.subnets.clear()
    assert stage.up().success
    assert stage.is_clean()


def test_a_sidecar_that_does_not_start_ends_the_run_with_the_engines_message(stage: Stage) -> None:
    stage.engine.refuses["cache"] = "pull access denied for redis, repository does not exist"
    with pytest.raises(EngineError, match="pull access denied") as caught:
        stage.up(sidecar={"cache": CACHE})
    assert "`docker pull` or build the image" in caught.value.hint
    assert stage.is_clean()


def test_a_missing_image_is_pulled_with_a_message(stage: Stage) -> None:
    stage.docker.lacks_image = True
    stage.up(sidecar={"cache": CACHE, "files": {"command": ["ls"]}})
    pulling = [output for output in stage.view.phases if output.startswith("pulling")]
    assert pulling == ["pulling redis:7 for the sidecar cache"]


def test_values_of_its_secrets_are_masked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_MINE", "from-the-caller")
    tells = Life((prints(0.2, "with from-the-caller and in-clear"),))
    given = {**CACHE, "secrets": ["OF_MINE"], "environment": {"API_TOKEN": "in-clear"}}
    stage.up({"cache": [tells]}, sidecar={"cache": given})
    assert "with *** and ***" in (stage.directory.logs / "cache.log").read_text()
    saved = [path for path in stage.directory.path.rglob("*") if path.is_file()]
    for value in ("from-the-caller", "in-clear"):
        assert not [path for path in saved if value.encode() in path.read_bytes()]


def _later(end: float) -> Life:
    """A leader that takes longer."""
    return Life((*LEADS.steps[:-1], ends(end, 0, "finished", "the program finished")))
