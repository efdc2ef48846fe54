"""Whole runs with an engine in memory: what is shown, saved and left."""

from __future__ import annotations

import json

import pytest

from cluster_kit.errors import EngineError, HostError, ManifestError, UsageError
from cluster_kit.image import extra
from tests.fakes.acting import LEADS, SCORES, Life, dies, ends, prints, says
from tests.fakes.stage import NAME, Stage


def test_a_run_that_goes_well_is_shown_saved_and_removed(stage: Stage) -> None:
    outcome = stage.up()
    assert (outcome.success, outcome.exit_code, outcome.reason) == (True, 0, "finished")
    assert (outcome.blame, outcome.notes, outcome.last_words) == (None, [], "")
    assert outcome.metrics == {"test_accuracy": 0.9, "validation_accuracy": 0.8}
    assert [task.exit_code for task in outcome.tasks] == [0] * 5
    assert [task.rx_bytes for task in outcome.tasks] == [1000] * 5
    assert stage.saved() == json.loads(json.dumps(outcome.as_json()))
    assert "100 training images" in (stage.directory.logs / "chief-0.log").read_text()
    assert {event["action"] for event in stage.events()} == {"create", "start", "die"}
    assert (stage.directory.path / "compose.yaml").read_text().startswith("# cluster-kit")
    assert stage.view.phases == [
        "planning",
        "starting 5 containers",
        f"running {NAME} on {stage_subnet(stage)}",
        "removing the containers",
    ]
    assert stage.view.states["chief-0"] == ["ready", "training", "ended"]
    assert stage.view.states["evaluator-0"] == ["running", "scoring", "ended"]
    assert stage.is_clean()


def stage_subnet(stage: Stage) -> str:
    for line in stage.docker.ups[-1].read_text().splitlines():
        if "subnet:" in line:
            return line.split()[-1]
    raise AssertionError("no subnet in the file")


def test_timings_are_of_this_run(stage: Stage) -> None:
    timings = stage.up().timings_s
    assert list(timings) == [
        "plan", "render", "preflight", "build", "up", "down", "first_step", "train", "total",
    ]  # fmt: skip
    assert (timings["up"], timings["first_step"], timings["train"]) == (0.5, 1.0, 2.0)
    assert 3.5 < timings["total"] < 6.0


def test_the_leaders_and_the_evaluators_lines_are_heard_also_after_a_restart(stage: Stage) -> None:
    scorer = (Life((prints(0.2, "first life"), dies(0.5))), Life((prints(0.1, "second life"),)))
    stage.up({"evaluator-0": scorer})
    stage.engine.finish()
    assert ("chief-0", "100 training images") in stage.view.lines
    assert ("evaluator-0", "first life") in stage.view.lines
    assert "ps-0" not in {task for task, _ in stage.view.lines}


def test_a_kept_cluster_is_there_after_its_end(stage: Stage) -> None:
    assert stage.up(keep=True).success
    assert len(stage.engine.boxes) == 5
    assert stage.saved()["success"]
    assert stage.view.phases[-1].startswith("running")
    stage.up()
    assert stage.is_clean(), "the next run takes its place"


@pytest.mark.parametrize("paused", [False, True])
def test_a_cluster_that_is_up_is_not_started_again(stage: Stage, paused: bool) -> None:
    stage.up(keep=True)
    box = next(iter(stage.engine.boxes.values()))
    box.state = "paused" if paused else "running"
    with pytest.raises(HostError, match="demo is already up: chief-0") as refused:
        stage.up()
    assert "cluster-kit down demo" in refused.value.cure
    assert len(stage.engine.boxes) == 5


def test_a_resumed_run_adds_to_its_evidence_and_shows_nothing_of_the_run_before(
    stage: Stage,
) -> None:
    first = stage.up()
    second = stage.up(
        {"chief-0": [Life((says(0.3, "start", attempt=1), ends(2.0, 0, "finished")))]}, resume=True
    )
    assert second.run == first.run
    assert "first_step" not in second.timings_s, "that step was the first run's"
    assert "test_accuracy" not in second.metrics
    assert stage.view.differences == []
    assert len(stage.events()) == 30
    assert (stage.directory.logs / "ps-0.log").read_text().count("server ready") == 2


def test_there_is_nothing_to_resume_before_the_first_run(stage: Stage) -> None:
    with pytest.raises(UsageError, match="nothing to resume"):
        stage.up(resume=True)
    assert stage.is_clean()


def test_a_subnet_that_is_taken_meanwhile_is_planned_again(stage: Stage) -> None:
    stage.docker.takes_subnet = 2
    outcome = stage.up()
    assert outcome.success
    taken = {str(cidr) for _, cidr in stage.engine.subnets.values()}
    assert len(stage.docker.ups) == 3
    assert stage_subnet(stage) not in taken
    ips = {task.ip for task in outcome.tasks}
    assert all(ip.rpartition(".")[0] in stage_subnet(stage) for ip in ips)
    assert stage_subnet(stage) in (stage.directory.path / "compose.yaml").read_text()


def test_a_host_on_which_every_subnet_is_taken_ends_it(stage: Stage) -> None:
    stage.docker.takes_subnet = 9
    with pytest.raises(EngineError, match="subnet is taken"):
        stage.up()
    assert len(stage.docker.ups) == 3
    assert (stage.saved()["reason"], stage.saved()["exit_code"]) == ("engine", 4)
    assert stage.is_clean()


def test_a_subnet_that_the_manifest_fixes_is_tried_once(stage: Stage) -> None:
    stage.docker.takes_subnet = 1
    with pytest.raises(EngineError, match="subnet is taken"):
        stage.up(subnet="172.30.5.0/24")
    assert len(stage.docker.ups) == 1
    assert stage.is_clean()


def test_an_image_that_is_absent_is_built_first(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.docker.lacks_image = True

    def build(*_: object, **__: object) -> bool:
        stage.docker.lacks_image = False
        return True

    monkeypatch.setattr(extra, "ensure_image", build)
    assert stage.up().success
    assert stage.view.phases[1].startswith("building the shared image cluster-kit/trainer:cpu-")


def test_an_image_that_cannot_be_built_starts_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.docker.lacks_image = True

    def fail(*_: object, **__: object) -> bool:
        raise EngineError("building the image failed", "read what pip says")

    monkeypatch.setattr(extra, "ensure_image", fail)
    with pytest.raises(EngineError, match="building the image failed"):
        stage.up()
    assert stage.docker.ups == []
    assert not stage.ran


@pytest.mark.parametrize("task", ["chief-0", "ps-0", "evaluator-0"])
def test_one_container_that_does_not_start_takes_the_rest_with_it(stage: Stage, task: str) -> None:
    stage.engine.refuses[task] = "no space left on device"
    with pytest.raises(EngineError, match="no space left on device"):
        stage.up()
    saved = stage.saved()
    assert (saved["success"], saved["reason"], saved["exit_code"]) == (False, "engine", 4)
    assert "no space left on device" in saved["message"]
    assert len(saved["tasks"]) == 5
    assert (stage.directory.logs / "worker-0.log").exists()
    assert stage.is_clean()


def test_a_wrong_manifest_starts_nothing(stage: Stage) -> None:
    with pytest.raises(ManifestError, match="worker"):
        stage.up(worker=0)
    assert not stage.ran
    assert stage.docker.ups == []


def test_a_host_that_is_too_small_starts_nothing(stage: Stage) -> None:
    stage.engine.facts["MemTotal"] = 2**30
    with pytest.raises(HostError, match="not fit to run demo") as refused:
        stage.up()
    assert "ask for fewer tasks" in refused.value.cure
    assert not stage.ran


def test_a_bug_in_the_kit_is_called_one_and_cleans_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_seen: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(stage.view, "update", broken)
    with pytest.raises(KeyError):
        stage.up()
    saved = stage.saved()
    assert (saved["reason"], saved["exit_code"]) == ("internal", 1)
    assert saved["message"] == "a bug in the kit: KeyError: 'x'"
    assert "100 training images" not in (stage.directory.logs / "ps-0.log").read_text()
    assert stage.is_clean()


def test_a_full_disk_costs_the_evidence_and_leaves_no_container(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cluster_kit.run.conclude.save_events", full)
    with pytest.raises(HostError, match=r"the run ended \(finished\), but .*No space left"):
        stage.up()
    assert stage.saved()["success"]
    assert stage.is_clean()


def test_status_and_the_live_table_agree_at_every_moment(stage: Stage) -> None:
    """Crashes, restarts, a pause and a revived leader."""
    stage.clock.at(1.2, lambda: stage.engine.pause("worker-1", True))
    stage.clock.at(2.2, lambda: stage.engine.pause("worker-1", False))
    stage.up({
        "chief-0": [Life((says(0.1, "start", attempt=1), says(0.9, "ready"), dies(1.5))), LEADS],
        "ps-0": [Life((says(0.2, "ready"), dies(1.0, 1))), Life((says(0.2, "ready"),))],
        "evaluator-0": [Life((*SCORES.steps, dies(3.0, 2))), SCORES],
    })  # fmt: skip
    assert stage.view.updates > 20
    assert stage.view.states["worker-1"] == ["ready", "paused", "ready", "ended"]
    assert stage.view.states["ps-0"][:3] == ["ready", "restarting", "running"]
    assert stage.view.differences == []
