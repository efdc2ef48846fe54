"""`stop` and `start` of watched and unwatched clusters."""

from __future__ import annotations

import pytest

from cluster_kit import labels
from cluster_kit.errors import EngineError, HostError
from cluster_kit.observe import user_requests
from cluster_kit.run import lifecycle
from cluster_kit.run.take_down import take_down
from tests.fakes.acting import Life, ends
from tests.fakes.stage import NAME, Stage
from tests.unit.run.asking import ACTING, BEGINS, LONG, TRAINS, box, do, restart

FITS = 66
"""The number of characters of a phase that fit into 80 columns, with the time of a long run."""


def test_a_stopped_cluster_is_waited_for_and_watched_further(stage: Stage) -> None:
    """Longer than every deadline: the time in which it is stopped does not count."""
    ips = {}

    def stop() -> None:
        ips.update({b.task: b.shown().ip for b in stage.engine.boxes.values()})
        assert lifecycle.stop(stage.host, stage.engine, NAME)
        assert not lifecycle.stop(stage.host, stage.engine, NAME)
        assert {b.state for b in stage.engine.boxes.values()} == {"exited"}

    def start() -> None:
        assert lifecycle.start(stage.host, stage.engine, NAME)
        assert not lifecycle.start(stage.host, stage.engine, NAME)
        assert ips == {b.task: b.shown().ip for b in stage.engine.boxes.values()}

    do(stage, 2.0, stop)
    do(stage, 700.0, start)
    outcome = stage.up(ACTING, deadline={"start": "10s", "job": "60s"})
    assert outcome.success, outcome.message
    assert outcome.notes[0].startswith("the cluster was stopped at ")
    assert outcome.notes[0].endswith("by `cluster-kit stop`, and started 698 s later")
    (output,) = (
        output for output in stage.view.phases if output.startswith("stopped on request at ")
    )
    assert output.endswith(": `cluster-kit start` continues it") and len(output) <= FITS
    at = stage.view.phases.index("the cluster was started again: the watch continues")
    assert stage.view.phases[at + 1].startswith("running demo on "), "it is not stopped any more"
    assert stage.view.differences == []
    assert stage.is_clean()


@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("attached_first", [False, True])
def test_an_unwatched_cluster_can_be_stopped_and_started(
    stage: Stage, forgotten: bool, attached_first: bool
) -> None:
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    assert lifecycle.stop(stage.host, stage.engine, NAME, from_page=forgotten)
    stage.clock.pass_by(3600)
    if forgotten:
        stage.engine.forget()
    if attached_first:
        do(stage, 30.0, lambda: lifecycle.start(stage.host, stage.engine, NAME))
    else:
        lifecycle.start(stage.host, stage.engine, NAME)
    outcome = stage.attach()
    assert outcome.success, outcome.message
    assert (
        f"{'from the page' if forgotten else 'by `cluster-kit stop`'}, and started"
        in (outcome.notes[0])
    )
    assert stage.is_clean()


def test_the_time_before_attach_counts_if_the_cluster_was_started_again(stage: Stage) -> None:
    """The end of all tasks before the start is not the end of the run."""
    stage.detach({"chief-0": [LONG, LONG]})
    stage.clock.pass_by(2)
    lifecycle.stop(stage.host, stage.engine, NAME)
    lifecycle.start(stage.host, stage.engine, NAME)
    stage.clock.pass_by(3)

    def interrupt() -> None:
        raise KeyboardInterrupt

    do(stage, 5.7, interrupt)
    outcome = stage.attach()
    assert outcome.reason == "interrupted"
    assert outcome.timings_s["total"] >= 5
    assert "train" not in outcome.timings_s, "the leader was not seen to end again"
    assert not any("stopped on request" in phase for phase in stage.view.phases), "it runs"
    assert outcome.notes[0] in stage.view.phases


def test_a_stopped_cluster_is_neither_replaced_nor_judged_but_can_be_removed(stage: Stage) -> None:
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    lifecycle.stop(stage.host, stage.engine, NAME)
    with pytest.raises(HostError, match="the cluster demo is stopped") as refused:
        stage.up()
    assert "`cluster-kit start demo` continues it" in refused.value.hint
    assert not stage.directory.outcome.exists()
    assert take_down(stage.host, stage.engine, NAME) == 5
    assert (stage.saved()["reason"], stage.saved()["exit_code"]) == ("stopped", 7)
    assert "and not started again" in stage.saved()["notes"][0]
    assert stage.is_clean()


@pytest.mark.parametrize("again", [False, True], ids=["ended", "restarted"])
def test_a_task_that_someone_has_ended_is_told_with_what_starts_it(
    stage: Stage, again: bool
) -> None:
    """In an all-reduce, training waits for it until a deadline."""
    do(stage, 2.0, lambda: stage.engine.end(box(stage, "evaluator-0").id))
    if again:
        do(stage, 2.5, lambda: stage.engine.start_again(box(stage, "evaluator-0").id))
    stage.up({**ACTING, "chief-0": [Life((*BEGINS, ends(9.0, 0, "finished")))]})
    told = [phase for phase in stage.view.phases if "was ended" in phase]
    line = "evaluator-0 was ended: `cluster-kit restart evaluator-0` starts it"
    assert told == ([] if again else [line]) and len(line) <= FITS
    assert sum(phase.startswith("running") for phase in stage.view.phases) == 1


RESTARTED = {
    "chief-0": [LONG, Life((BEGINS[0],))],
    "worker-1": [Life(TRAINS.steps, after_job_s=3.0)],
}


@pytest.mark.parametrize("back_s", [2.05, 2.5])
@pytest.mark.parametrize("watched", [False, True])
def test_a_leader_that_docker_restarts_has_stopped_the_run(
    stage: Stage, watched: bool, back_s: float
) -> None:
    """The job ends with it; worker-1 still runs when it is up again."""
    do(stage, 2.0, lambda: stage.engine.end(box(stage, "chief-0").id))
    do(stage, back_s, lambda: stage.engine.start_again(box(stage, "chief-0").id))
    if watched:
        outcome = stage.up(RESTARTED)
    else:
        stage.detach(RESTARTED)
        stage.clock.pass_by(4)
        outcome = stage.attach()
    assert (outcome.reason, outcome.exit_code, outcome.blame) == ("stopped", 7, None)
    assert outcome.message == "chief-0 was stopped from outside: by `docker stop`, say"
    assert stage.is_clean()


def test_a_server_that_docker_killed_is_blamed_with_the_cause(stage: Stage) -> None:
    do(stage, 2.0, lambda: stage.engine.kill(box(stage, "ps-0").id))
    silent = ends(30.0, 6, "silent", "ps-0's server has not answered for 28 s", "ps-0")
    outcome = stage.up({"chief-0": [Life((*BEGINS, silent))]})
    assert (outcome.reason, outcome.blame) == ("silent", "ps-0")
    assert outcome.message == (
        "ps-0's server has not answered for 28 s "
        "(it was ended from outside, by `docker kill`, say, and not started again)"
    )


def test_a_stopped_cluster_is_judged_when_it_is_removed(stage: Stage) -> None:
    do(stage, 2.0, lambda: lifecycle.stop(stage.host, stage.engine, NAME))

    def down() -> None:
        containers = stage.engine.seen(NAME)
        user_requests.write(
            stage.directory.path,
            user_requests.DOWN,
            [one.name for one in containers],
            stage.clock.time(),
        )

    do(stage, 50.0, down)
    assert stage.up(ACTING).reason == "stopped"
    assert stage.is_clean()


def test_ctrl_c_ends_a_stopped_cluster_like_any_other(stage: Stage) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    do(stage, 2.0, lambda: lifecycle.stop(stage.host, stage.engine, NAME))
    stage.clock.at(50.0, interrupt)
    assert stage.up(ACTING).reason == "interrupted"
    assert stage.is_clean()


def test_an_ended_cluster_is_not_started(stage: Stage) -> None:
    with pytest.raises(HostError, match="no container of the cluster demo is there"):
        lifecycle.stop(stage.host, stage.engine, NAME)
    stage.detach()
    stage.clock.pass_by(10)
    for call in (lifecycle.stop, lifecycle.start):
        with pytest.raises(HostError, match=r"has ended \(chief-0 with exit code 0\)") as refused:
            call(stage.host, stage.engine, NAME)
        assert "cluster-kit attach demo" in refused.value.hint
    with pytest.raises(HostError, match="has ended"):
        restart(stage, "worker-1")


def test_a_start_that_the_engine_refuses_leaves_the_cluster_stopped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "AT_ONCE", 1)
    stage.engine.on_call = lambda name: stage.clock.pass_by(0.1 * (name == "start_again"))
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    lifecycle.stop(stage.host, stage.engine, NAME)
    with pytest.raises(HostError, match="demo is stopped"):
        restart(stage, "worker-1")
    stage.engine.refuses["worker-1"] = "no such device"
    with pytest.raises(EngineError, match="no such device"):
        lifecycle.start(stage.host, stage.engine, NAME)
    assert {one.state for one in stage.engine.boxes.values()} == {"exited"}
    stage.engine.refuses.clear()
    stage.clock.pass_by(1)
    assert lifecycle.start(stage.host, stage.engine, NAME)
    assert stage.attach().success


def test_a_gpu_that_another_cluster_uses_by_now_is_reported(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    lifecycle.stop(stage.host, stage.engine, NAME)
    held = box(stage, "worker-1")
    held.service = {**held.service, "labels": {**held.mark, labels.GPUS: "1"}}
    monkeypatch.setattr(stage.engine, "gpus_taken", lambda: (("1", "other"), ("0", NAME)))
    with pytest.raises(HostError, match="the GPU 1 of worker-1 is held by the cluster other now"):
        lifecycle.start(stage.host, stage.engine, NAME)
    monkeypatch.undo()


def test_a_request_that_cannot_be_recorded_is_refused(stage: Stage) -> None:
    stage.detach(ACTING)
    stage.clock.pass_by(2)
    (stage.directory.path / user_requests.FILE).mkdir()
    with pytest.raises(HostError, match="cannot be written, which tells the watching process"):
        lifecycle.stop(stage.host, stage.engine, NAME)
    assert {one.state for one in stage.engine.boxes.values()} == {"running"}
