"""Clusters that `up` has detached: which process may watch them, how that ends, and what is
refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from cluster_kit import labels
from cluster_kit.errors import EngineError, HostError, UsageError
from cluster_kit.platforms.container import plan_hash
from cluster_kit.run.cluster_lock import Watched, claim
from cluster_kit.run.run_directory import read_record
from tests.fakes.acting import Life, ends
from tests.fakes.stage import NAME, Stage


def test_an_interrupted_attach_ends_the_run(stage: Stage) -> None:
    stage.detach()
    stage.clock.at(0.7, _interrupt)
    outcome = stage.attach()
    assert (outcome.reason, outcome.exit_code) == ("interrupted", 130)
    assert stage.is_clean()


def test_an_interrupted_wait_leaves_the_run(stage: Stage) -> None:
    stage.detach()
    stage.clock.at(0.7, _interrupt)
    with pytest.raises(KeyboardInterrupt):
        stage.wait()
    assert len(stage.engine.boxes) == 5
    assert not stage.directory.outcome.exists()
    assert stage.wait().success
    assert stage.is_clean()


def _interrupt() -> None:
    raise KeyboardInterrupt


def test_a_detached_cluster_is_up_and_no_process_watches_it(stage: Stage) -> None:
    stage.detach()
    assert len(stage.engine.boxes) == 5
    assert stage.view.phases == ["planning", "starting 5 containers"]
    with pytest.raises(HostError, match="demo is already up") as refused:
        stage.up()
    assert "`cluster-kit attach demo` continues it" in refused.value.hint
    assert "`cluster-kit down demo` removes it, after which `--resume` cont" in refused.value.hint
    assert stage.attach().success
    assert stage.up().success


def test_an_interrupted_start_leaves_nothing(stage: Stage) -> None:
    def interrupt(name: str) -> None:
        if name == "start ps-0":
            _interrupt()

    stage.docker.on_call = interrupt
    with pytest.raises(KeyboardInterrupt):
        stage.detach()
    assert stage.saved()["reason"] == "interrupted"
    assert stage.is_clean()


def test_a_failed_start_leaves_nothing(stage: Stage) -> None:
    stage.engine.refuses["ps-0"] = "no space left on device"
    with pytest.raises(EngineError, match="no space left on device"):
        stage.detach()
    assert stage.saved()["reason"] == "engine"
    assert stage.is_clean()


def test_an_ended_cluster_is_not_removed_before_it_is_judged(stage: Stage) -> None:
    stage.detach()
    stage.clock.pass_by(60)
    with pytest.raises(HostError, match="has ended, and was neither judged nor saved") as refused:
        stage.up()
    assert "cluster-kit attach demo" in refused.value.hint
    assert stage.attach(keep=True).success
    assert len(stage.engine.boxes) == 5
    with pytest.raises(HostError, match="was kept after its end"):
        stage.up()


def test_a_second_attach_names_the_watching_process(stage: Stage) -> None:
    stage.detach()
    with (
        claim(stage.host, stage.engine, NAME, stage.workspace.runs(NAME)),
        pytest.raises(Watched, match="process") as told,
    ):
        stage.attach()
    assert "cluster-kit wait demo" in told.value.hint
    assert stage.attach().success


def test_a_second_attach_disturbs_nothing(stage: Stage) -> None:
    told: list[HostError] = []

    def second() -> None:
        with pytest.raises(Watched) as error:
            stage.attach()
        told.append(error.value)

    stage.clock.at(1.2, second)
    assert stage.up().success
    assert told
    assert stage.is_clean()


def test_a_wait_waits_for_the_watching_process(stage: Stage) -> None:
    stage.detach()
    watches = contextlib.ExitStack()
    watches.enter_context(claim(stage.host, stage.engine, NAME, stage.workspace.runs(NAME)))
    stage.clock.settle = lambda: None  # no process listens to events until then

    def asked(name: str) -> None:
        if name == "events":
            stage.clock.settle = stage.engine.settle

    stage.engine.on_call = asked
    stage.clock.at(10.0, watches.close)
    began = stage.clock.time()
    outcome = stage.wait()
    assert outcome.success
    assert stage.clock.time() - began >= 10.0
    assert stage.is_clean()


def test_the_outcome_of_a_judged_run_is_printed_again(stage: Stage) -> None:
    first = stage.up({"chief-0": [Life((ends(1.0, 1, "failed", "E: no"),))]}, keep=True)
    events = len(stage.events())
    assert stage.attach() == first
    assert stage.wait().exit_code == 5
    assert len(stage.events()) == events
    assert len(stage.engine.boxes) == 5, "they were kept"
    stage.engine.remove(NAME)
    assert stage.attach() == first


def test_there_is_nothing_to_attach_to(stage: Stage) -> None:
    with pytest.raises(UsageError, match="no container of the cluster demo is there"):
        stage.attach()
    stage.detach()
    stage.engine.remove(NAME)
    with pytest.raises(UsageError, match="has no verdict") as refused:
        stage.wait()
    assert refused.value.exit_code == 2


def test_a_cluster_that_the_kit_did_not_start_is_not_touched(stage: Stage) -> None:
    stage.detach()
    stage.directory.record.unlink()
    with pytest.raises(UsageError, match="was not started by `cluster-kit up`"):
        stage.attach()
    with pytest.raises(HostError, match="already up") as refused:
        stage.up()
    assert "attach" not in refused.value.hint
    assert len(stage.engine.boxes) == 5


@pytest.mark.parametrize("text", ["", "{}", '{"cluster": 1}', "[" * 5000])
def test_an_unreadable_record_is_named(stage: Stage, text: str) -> None:
    stage.detach()
    stage.directory.record.write_text(text)
    with pytest.raises(UsageError, match=r"run\.json cannot be read"):
        stage.attach()
    assert len(stage.engine.boxes) == 5


def test_the_record_has_the_whole_cluster(stage: Stage) -> None:
    stage.detach(gpus="none", worker=3, requirements="")
    record = read_record(stage.directory)
    assert record is not None
    box = next(iter(stage.engine.boxes.values()))
    assert plan_hash(record.cluster) == box.mark[labels.PLAN]
    assert Path(box.output).parent == stage.directory.path


def test_unwatched_time_after_the_end_of_a_run_does_not_count(stage: Stage) -> None:
    watched = stage.up().timings_s["total"]
    stage.detach()
    stage.clock.pass_by(600)
    outcome = stage.attach()
    assert outcome.success
    assert outcome.timings_s["total"] < watched + 10
    stage.detach()
    stage.clock.pass_by(1)
    assert abs(stage.attach().timings_s["total"] - watched) < 10
