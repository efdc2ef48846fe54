"""`restart` of watched tasks: a requested restart is no failure, and is reported."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cluster_kit.observe import user_requests
from cluster_kit.run import lifecycle
from tests.fakes.acting import LEADS, Life, dies, ends
from tests.fakes.stage import NAME, Stage
from tests.unit.run.asking import ACTING, BEGINS, LONG, TRAINS, box, do, restart


def test_a_restarted_worker_is_not_reported_as_a_crash(stage: Stage) -> None:
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
    assert "a user requested it" in note
    assert note.replace(" by `cluster-kit restart`", "") in stage.view.phases
    assert addresses[0] == addresses[1]
    assert stage.is_clean()


def test_what_was_done_from_the_page_is_shown_where_the_run_is_watched(stage: Stage) -> None:
    def kill() -> None:
        lifecycle.note(
            stage.host, [box(stage, "worker-1").shown()], "kill", ["worker-1"], from_page=True
        )

    do(stage, 2.0, kill)
    (note,) = stage.up().notes
    assert note.removesuffix(": a person did it") in stage.view.phases


def test_with_the_leader_all_tasks_are_restarted_and_the_run_is_watched_further(
    stage: Stage,
) -> None:
    do(stage, 2.0, lambda: restart(stage, "chief-0"))
    outcome = stage.up(ACTING)
    assert outcome.success, outcome.message
    assert {t.restarts for t in outcome.tasks} == {1}
    (note,) = outcome.notes
    assert note.startswith("all tasks were restarted at ")
    assert [line for _, line in stage.view.lines] == ["100 training images"]


def test_retries_count_from_zero_after_a_requested_restart(stage: Stage) -> None:
    crash = Life((*BEGINS, dies(1.0)))
    do(stage, 6.5, lambda: lifecycle.stop(stage.host, stage.engine, NAME))
    do(stage, 7.5, lambda: lifecycle.start(stage.host, stage.engine, NAME))
    acting = {"chief-0": [crash, crash, LONG, crash, crash, LEADS]}
    outcome = stage.up(acting)
    assert outcome.success, outcome.message
    assert {t.name: t.restarts for t in outcome.tasks}["chief-0"] == 5


def test_a_run_that_fails_because_of_a_restart_says_so(stage: Stage) -> None:
    failed = ends(2.5, 1, "failed", "worker-1 was lost", "worker-1")
    do(stage, 2.0, lambda: restart(stage, "worker-1"))
    outcome = stage.up({"chief-0": [Life((*BEGINS, failed))], "worker-1": [TRAINS, Life(())]})
    assert (outcome.reason, outcome.blame) == ("failed", "worker-1")
    assert "worker-1 was lost (worker-1 was restarted at" in outcome.message
    assert "by `cluster-kit restart`: a user requested it)" in outcome.message


def test_a_task_that_ends_because_of_a_restart_is_not_the_first_failure(stage: Stage) -> None:
    deaf = Life(TRAINS.steps, stubborn=True)  # It is killed after its grace: 137, not 143.
    failed = ends(2.5, 1, "failed", "")
    do(stage, 2.0, lambda: restart(stage, "worker-1"))
    outcome = stage.up({"chief-0": [Life((*BEGINS, failed))], "worker-1": [deaf]})
    assert (outcome.blame, outcome.exit_code) == ("chief-0", 5)


@pytest.mark.parametrize("line", ["{", '{"event": "asked", "time": 1}', '{"tasks": 3}', "[]"])
def test_other_contents_of_the_request_file_are_ignored(stage: Stage, line: str) -> None:
    def scribble() -> None:
        with (stage.directory.path / user_requests.FILE).open("a") as file:
            file.write(f"{line}\n")
        wish = {"event": "asked", "what": "restart", "time": time.time(), "tasks": ["chief-0"]}
        (stage.directory.progress / "host.jsonl").write_text(json.dumps(wish) + "\n")

    do(stage, 1.0, scribble)
    outcome = stage.up()
    assert (outcome.success, outcome.notes) == (True, [])


def test_a_resumed_run_ignores_earlier_requests(stage: Stage, tmp_path: Path) -> None:
    do(stage, 2.0, lambda: restart(stage, "worker-1"))
    assert stage.up().notes
    stage.clock.pass_by(60)
    (resumed,) = stage.up(resume=True).notes
    assert resumed.startswith("resumed at ")
