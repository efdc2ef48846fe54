"""A run whose success other tasks decide than its leader: its verdict, and what is told of it."""

from __future__ import annotations

from typing import Any

from cluster_kit.observe.task_view import State
from cluster_kit.platforms.engine import Container
from cluster_kit.report.lanes import lanes_of
from cluster_kit.resolved import Cluster
from cluster_kit.run.history import verdict_of
from cluster_kit.run.verdict import judge, starved
from tests.make import cluster
from tests.unit.run.verdict.test_outcome import told
from tests.unit.stories import WITHOUT_CHIEF, Story, container

HALF = cluster(chief=0, ps=0, worker=2, success={"worker": 0.5}, restart={"permanent": [3]})
DECIDED = "1 of 2 workers ended well (success = {worker = 0.5}); worker-1 ended with 3"
PERMANENT = "worker-1 ended with 3, which is permanent"


def stays(story: Story, time: float, task: str, code: int, message: str = "") -> Story:
    """The task's program ends for good, and its container waits for the job's end."""
    reason = "failed" if code else "finished"
    fields: dict[str, Any] = {"exit_code": code, "reason": reason, "message": message}
    return story.says(time, task, "end", stays=True, tasks=[], **fields)


def leader_ends(story: Story, code: int = 0, **fields: Any) -> Story:
    reason = "failed" if code else "finished"
    end = {"exit_code": code, "reason": reason, "message": "", "tasks": [], **fields}
    return story.says(9, "worker-0", "end", **end).dies(9.1, "worker-0", code)


def half(of: Cluster = HALF) -> Story:
    story = leader_ends(stays(Story.of(of), 5, "worker-1", 3, "E: no"), decided=DECIDED)
    return story.dies(9.2, "worker-1", 0)


def test_the_leaders_sentence_is_in_the_outcome() -> None:
    outcome = told(HALF, half())
    assert (outcome["success"], outcome["reason"], outcome["decided"]) == (
        True,
        "finished",
        DECIDED,
    )
    assert verdict_of(outcome) == f"success: {DECIDED}"
    (note,) = outcome["notes"]
    assert note.startswith("worker-1: failed once (exit code 3), and the leader ended without it")


def test_a_task_that_stays_has_the_exit_code_of_its_program() -> None:
    containers: list[Container] = [
        container(f"worker-{index}", exit_code=0, oom=False) for index in (0, 1)
    ]
    codes = [task["exit_code"] for task in told(HALF, half(), *containers)["tasks"]]
    assert codes == [0, 3]


def test_a_task_whose_program_has_ended_for_good_has_ended() -> None:
    """Before its container has, and whatever comes first: its last line, or its container's end."""
    story = stays(Story.of(HALF), 5, "worker-1", 3)
    for view in (story.seen.tasks["worker-1"], story.dies(9, "worker-1", 0).seen.tasks["worker-1"]):
        assert (view.state, view.exit_code, view.usage) == (State.ENDED, 3, None)
    assert story.seen.is_done("worker-1")
    late = stays(Story.of(HALF).dies(9, "worker-1", 0), 8.9, "worker-1", 3)
    assert late.seen.tasks["worker-1"].exit_code == 3
    missed = story.seen.with_missed([]).tasks["worker-1"]
    assert (missed.state, missed.exit_code) == (State.ENDED, 3)
    again = story.dies(9, "worker-1", 137).start(9.5, "worker-1").seen.tasks["worker-1"]
    assert (again.state, again.exit_code) == (State.RUNNING, None)


def test_a_permanent_exit_code_is_in_the_verdict_with_the_error() -> None:
    story = stays(Story.of(HALF), 5, "worker-1", 3)
    message = "worker-1: ValueError: no"
    story = leader_ends(story, 1, decided=PERMANENT, message=message, tasks=["worker-1"])
    verdict = judge(HALF, story.seen, "ended")
    assert (verdict.blame, verdict.message, verdict.decided) == (
        "worker-1", "ValueError: no", PERMANENT
    )  # fmt: skip
    outcome = told(HALF, story.dies(9.2, "worker-1", 0))
    assert (outcome["exit_code"], outcome["program_exit_code"]) == (5, 3)
    assert verdict_of(outcome) == f"failed, blame worker-1: ValueError: no ({PERMANENT})"


def test_there_is_no_sentence_without_the_keys() -> None:
    """Whatever a task writes: without the keys there is nothing to decide."""
    assert told(WITHOUT_CHIEF, half(WITHOUT_CHIEF))["decided"] == ""


def test_a_sentence_has_one_line_of_bounded_length() -> None:
    story = leader_ends(Story.of(HALF), decided="a" * 5000 + "\nb")
    assert told(HALF, story)["decided"] == "a" * 1000


def test_an_evaluator_fails_the_run_unless_its_share_is_0() -> None:
    for share, success in ((1, True), (0, False)):
        of = cluster(evaluator=1, success={"chief": 1, "evaluator": share})
        story = Story.of(of).says(8, "chief-0", "end", exit_code=0, reason="finished", decided="x")
        story = story.dies(9, "chief-0", 0).ends(9.5, "evaluator-0", 1, "failed", "E: no")
        verdict = judge(of, story.seen, "ended")
        assert verdict.success is not success
        assert verdict.decided == ("" if success else "x")
        noted = "evaluator-0: failed once (exit code 1), which does not count (`success`)"
        assert told(of, story)["notes"] == ([] if success else [f"{noted}; its last words: E: no"])


def test_a_worker_that_the_job_can_do_without_may_run_out_of_memory() -> None:
    """Twice before the first step ends a run at once, unless its success does not need the task."""
    limit = {"role": {"worker": {"memory": "1g"}}}
    for success, name in (("leader", "worker-1"), ("all", "worker-1"), ({"worker": 0.5}, "")):
        of = cluster(chief=0, ps=0, worker=2, success=success, **limit)
        story = Story.of(of)
        for begin in (1.0, 3.0):
            story = story.says(begin, "worker-1", "start", attempt=1).oom(begin + 1, "worker-1")
            story = story.ends(begin + 1, "worker-1", 137, "failed", "killed by SIGKILL")
            story = story.start(begin + 1.5, "worker-1")
        assert starved(of, story.seen) == name


def test_a_lane_shows_when_a_program_has_ended_for_good() -> None:
    story = half()
    lane = lanes_of(HALF, story.seen.events, story.seen.entries, 10.0)["worker-1"]
    assert [(mark.kind, mark.at, mark.text) for mark in lane.marks] == [
        ("fault", 5, "its program ended for good with exit code 3")
    ]
    assert max(span.end for span in lane.spans) == 5
