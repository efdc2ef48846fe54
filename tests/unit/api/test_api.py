"""The kit from Python: the same runs as on the command line, told by values, nothing printed."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import cluster_kit as ck
from cluster_kit.util import signals
from tests.fakes.acting import Life, ends
from tests.fakes.stage import NAME, Stage


def load(stage: Stage, **overrides: object) -> ck.Job:
    return ck.load(NAME, root=stage.workspace.root, **overrides)


def test_a_job_is_planned_and_rendered_and_nothing_is_started(stage: Stage) -> None:
    job = load(stage, worker=3)
    assert [task.name for task in job.plan().tasks if task.role == "worker"] == [
        "worker-0", "worker-1", "worker-2",
    ]  # fmt: skip
    assert "worker-2:" in job.render()
    assert not stage.engine.boxes and not stage.ran


def test_a_run_ends_with_its_outcome_tells_what_happens_and_prints_nothing(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[ck.RunEvent] = []
    outcome = load(stage).run(told.append)
    assert (outcome.success, outcome.metrics["test_accuracy"]) == (True, 0.9)
    assert outcome.as_json()["cluster"] == NAME and stage.is_clean()
    assert {event.kind for event in told} == {"phase", "log", "state"}
    assert ("chief-0", "100 training images") in {(event.task, event.text) for event in told}
    last = [event.seen for event in told if event.seen is not None][-1]
    assert last.tasks["chief-0"].exit_code == 0
    assert load(stage).run().success
    assert capfd.readouterr() == ("", "")


def test_a_training_that_fails_is_an_outcome_and_no_exception(stage: Stage) -> None:
    stage.engine.acting = {"chief-0": [Life((ends(1.0, 1, "failed", "ValueError: no"),))]}
    outcome = load(stage).run()
    assert (outcome.success, outcome.blame, outcome.exit_code) == (False, "chief-0", 5)


def test_errors_are_the_kits_own_and_name_keys(stage: Stage) -> None:
    with pytest.raises(ck.ManifestError, match=r"worker = -1: a cluster needs at least") as caught:
        load(stage, worker=-1).plan()
    assert "--workers" not in str(caught.value) and caught.value.exit_code == 2
    with pytest.raises(ck.ManifestError, match="wrker = 3: no such key"):
        load(stage, wrker=3)
    with pytest.raises(ck.UsageError, match="no manifest `dmo`"):
        ck.load("dmo", root=stage.workspace.root)
    assert issubclass(ck.ManifestError, ck.KitError)


def test_paths_are_relative_to_the_current_directory(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    job = load(stage, program="mine.py", evaluator=0, deadline={"job": "5m"})
    assert job.overrides["program"] == str(tmp_path / "mine.py")
    assert job.plan().deadlines.job == 300
    assert load(stage, program="classifier").overrides["program"] == "classifier"


def test_a_cluster_stays_up_for_a_block_and_goes_with_it(stage: Stage) -> None:
    with load(stage).up() as cluster:
        assert (cluster.name, cluster.directory.path.parent.name) == (NAME, NAME)
        assert [task.name for task in cluster.tasks()] == [
            task.name for task in cluster.cluster.tasks
        ]
        config = cluster.tf_config("worker-1")
        assert config["task"] == {"type": "worker", "index": 1}
        assert "evaluator" not in config["cluster"]
        with pytest.raises(ck.UsageError, match="demo has no task worker-9"):
            cluster.logs("worker-9")
        with pytest.raises(ck.UsageError, match="demo has no task worker-9"):
            cluster.tf_config("worker-9")
    assert stage.is_clean()


def test_a_cluster_that_is_waited_for_has_its_outcome(stage: Stage) -> None:
    with load(stage).up() as cluster:
        outcome = cluster.wait()
    assert outcome.success and stage.is_clean()


def test_it_goes_also_if_the_block_fails(stage: Stage) -> None:
    with pytest.raises(ZeroDivisionError), load(stage).up() as cluster:
        assert cluster.tasks()
        raise ZeroDivisionError
    assert stage.is_clean()


def test_a_callers_signal_handlers_are_its_own(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "_is_command", False)
    before = signal.getsignal(signal.SIGINT)
    load(stage).run()
    assert signal.getsignal(signal.SIGINT) is before


def test_every_name_is_there_and_no_other() -> None:
    assert {name for name in ck.__all__ if getattr(ck, name) is not None} == set(ck.__all__)
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        ck.laod  # noqa: B018
