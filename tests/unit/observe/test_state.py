"""Reports of the engine and the tasks become states, restarts and figures of each task."""

from __future__ import annotations

import pytest

from cluster_kit.observe.state import RunState
from cluster_kit.platforms.docker.docker_engine import Event
from tests.unit.stories import CLUSTER, Story


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
        lambda s: s.says(4, "ps-0", "evaluation", accuracy=0.9),
        lambda s: s.dies(5, "ps-0", 137),
        lambda s: s.start(6, "ps-0"),
    ):
        story = step(story)
        states.append(story.seen.tasks["ps-0"].state)
    assert states == [
        "created", "running", "ready", "training", "scoring", "restarting", "running",
    ]  # fmt: skip
    task = story.seen.tasks["ps-0"]
    assert (task.restarts, task.exit_code, task.step) == (1, None, 10)


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
