"""Reports of the engine and the tasks become states, restarts and figures of each task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cluster_kit.observe.reconcile import from_containers
from cluster_kit.observe.state import RunState
from cluster_kit.observe.user_requests import Asked
from cluster_kit.platforms.docker.docker_engine import Event
from tests.entries import as_entry
from tests.unit.stories import CLUSTER, WITHOUT_CHIEF, Story, container


def test_an_event_of_an_unknown_task_changes_nothing() -> None:
    seen = RunState.of(CLUSTER)
    assert seen.with_event(Event(1.0, "die", "worker-9", 1)) == seen


def test_lines_read_after_the_end_do_not_change_the_state() -> None:
    story = Story.of().ends(9, "chief-0", 0, "finished").says(8.9, "chief-0", "epoch", loss=0.5)
    task = story.seen.tasks["chief-0"]
    assert (task.state, task.exit_code, task.loss) == ("ended", 0, 0.5)


def test_a_task_goes_through_its_states_and_counts_its_restarts() -> None:
    story = Story(RunState.of(CLUSTER))
    states = [story.seen.tasks["ps-0"].state]
    for step in (
        lambda s: s.start(1, "ps-0"),
        lambda s: s.says(2, "ps-0", "ready"),
        lambda s: s.says(3, "ps-0", "step", step=10),
        lambda s: s.says(3.5, "ps-0", "scoring", pending=2),
        lambda s: s.says(4, "ps-0", "evaluation", accuracy=0.9),
        lambda s: s.says(4.5, "ps-0", "scoring", pending=0),
        lambda s: s.dies(5, "ps-0", 137),
        lambda s: s.start(6, "ps-0"),
    ):
        story = step(story)
        states.append(story.seen.tasks["ps-0"].state)
    assert states == [
        "created", "running", "ready", "training", "scoring", "scoring", "waiting",
        "restarting", "running",
    ]  # fmt: skip
    task = story.seen.tasks["ps-0"]
    assert (task.restarts, task.exit_code, task.step) == (1, None, 10)


def test_a_leader_whose_program_has_ended_waits_for_those_that_decide() -> None:
    story = Story.of().says(2, "chief-0", "ready").says(3, "chief-0", "phase", name="finishing")
    assert story.seen.tasks["chief-0"].state == "ready"
    assert (
        story.says(4, "chief-0", "phase", name="waiting").seen.tasks["chief-0"].state == "waiting"
    )


def test_a_program_that_begins_again_trains_no_more_and_neither_do_its_servers() -> None:
    story = Story.of()
    steps: list[tuple[str, dict[str, Any]]] = [("chief-0", {"step": 40, "steps_per_s": 50.0})]
    steps += [(name, {"own_steps": 20, "steps_per_s": 25.0}) for name in ("worker-0", "worker-1")]
    reports: list[tuple[float, str, str, dict[str, Any]]] = [
        (1.0, name, "ready", {}) for name in ("worker-0", "worker-1", "chief-0")
    ]
    reports += [(2.0, name, "step", about) for name, about in steps]
    reports += [(3.0, "chief-0", "failure", {"exit_code": 1}), (4.0, "chief-0", "retry", {})]
    for time, name, event, about in reports:
        story = story.says(time, name, event, **about)
        if event == "step":
            assert story.seen.tasks[name].state == "training"
    states = {name: story.seen.tasks[name] for name in ("chief-0", "worker-0", "worker-1")}
    boxes = [container(name, state="running", exit_code=None, oom=False) for name in states]
    entries = [as_entry(name, time, event, about) for time, name, event, about in reports]
    for views in (list(states.values()), from_containers(boxes, entries)):
        assert [view.state for view in views] == ["running", "ready", "ready"]
        assert [view.shown_speed for view in views] == [None] * 3
        assert [view.shown_step for view in views] == [40, None, None]
    last: list[tuple[float, str, str, dict[str, Any]]] = [
        (5.0, "worker-0", "step", {"own_steps": 2, "steps_per_s": 9.0}),
        (6.0, "worker-0", "end", {"exit_code": 0}),
    ]
    for report in last:
        reports.append(report)
        story = story.says(*report[:3], **report[3])
        entries = [as_entry(name, time, event, about) for time, name, event, about in reports]
        without_the_first = [entry for entry in entries if entry.time != 2]
        again = [from_containers(boxes, read)[1] for read in (entries, without_the_first)]
        again.append(story.seen.tasks["worker-0"])
        assert [(view.state, view.all_own_steps) for view in again] == [("training", 2)] * 3


def test_a_task_that_starts_again_has_no_speed() -> None:
    story = Story.of().says(2, "worker-0", "step", own_steps=9, steps_per_s=9.0)
    again = story.dies(3, "worker-0", 137).start(4, "worker-0")
    assert again.seen.tasks["worker-0"].shown_speed is None
    late = again.says(2.9, "worker-0", "step", own_steps=9, steps_per_s=9.0)
    assert late.seen.tasks["worker-0"].shown_speed is None


def test_the_share_of_a_program_that_began_again_has_its_steps_from_before() -> None:
    reports = [("worker-0", 9), ("worker-1", 9), ("worker-1", 1), ("worker-0", 11), ("worker-1", 2)]
    reports = [("worker-0", 8), *reports]
    entries = [
        as_entry(name, at, "step", {"own_steps": steps, "steps_per_s": 1.0})
        for at, (name, steps) in enumerate(reports, 1)
    ]
    story = Story.of(WITHOUT_CHIEF)
    for entry in entries:
        story = Story(story.seen.with_entry(entry))
    boxes = [container(name, state="running", exit_code=None, oom=False, leader=False)
             for name in story.seen.tasks]  # fmt: skip
    for views in (list(story.seen.tasks.values()), from_containers(boxes, entries)):
        assert [view.all_own_steps for view in views] == [11, 11]


@pytest.mark.parametrize(("what", "state"), [("kill", "ended"), ("restart", "restarting")])
def test_only_a_requested_restart_renews_the_retries(what: str, state: str) -> None:
    """The engine counts a kill from the page like a crash."""
    story, asked = Story.of(), []
    for time in (10.0, 20.0, 30.0, 40.0):
        asked.append(Asked(time, what, ("worker-0",), from_page=True))
        story = Story(replace(story.seen, requests=tuple(asked))).dies(time + 0.1, "worker-0", 137)
        before, story = story, story.start(time + 1, "worker-0")
    assert before.seen.tasks["worker-0"].state == state


def test_a_report_that_comes_before_the_engines_start_counts() -> None:
    story = Story(RunState.of(CLUSTER)).says(1, "ps-0", "ready").start(1.4, "ps-0")
    assert story.seen.tasks["ps-0"].state == "ready"
    again = story.dies(5, "ps-0", 137).says(5.7, "ps-0", "ready").start(6, "ps-0")
    assert again.seen.tasks["ps-0"].state == "ready"
    ended = story.says(1.3, "ps-0", "end", exit_code=0, reason="finished")
    assert ended.seen.end_of("ps-0") is not None
    older = story.says(4.9, "ps-0", "step", step=1).dies(5, "ps-0", 137).start(5.5, "ps-0")
    assert older.seen.tasks["ps-0"].state == "running"


def test_invalid_figures_are_left_out() -> None:
    story = Story.of().says(1, "chief-0", "step", step="many", loss=True, accuracy=1e300)
    task = story.seen.tasks["chief-0"]
    assert (task.step, task.loss, task.accuracy) == (None, None, None)


def test_an_evaluator_whose_grace_is_over_is_not_waited_for_again() -> None:
    story = Story.of().ends(10, "chief-0", 0, "finished")
    assert not story.ends(11, "evaluator-0", 1, "failed").seen.is_done("evaluator-0")
    late = story.ends(130, "evaluator-0", 6, "evaluator-grace")
    assert late.seen.is_done("evaluator-0")
    assert late.start(130.5, "evaluator-0").seen.is_done("evaluator-0")


@pytest.mark.parametrize(
    ("leaders_code", "task", "died", "over"),
    [
        (2, "worker-0", 9.9, True),
        (2, "evaluator-0", 9.9, True),
        (0, "worker-0", 9.9, True),
        (0, "evaluator-0", 9.9, False),
        (2, "worker-0", 5.0, False),
    ],
)
def test_a_task_that_restarts_after_the_leaders_end_is_not_waited_for(
    leaders_code: int, task: str, died: float, over: bool
) -> None:
    """The engine restarts it half a second after its end; the leader ends at 10."""
    story = Story.of().dies(died, task, 2).ends(10, "chief-0", leaders_code, "")
    still_scores = task == "evaluator-0" and leaders_code == 0
    assert story.seen.is_done(task) is not still_scores
    assert story.start(died + 0.5, task).seen.is_done(task) is over
    assert not story.seen.is_done("worker-1"), "it has yet to hear of the end"
