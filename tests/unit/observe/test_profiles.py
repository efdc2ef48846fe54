"""The notes about a trace that a manifest asks for."""

from __future__ import annotations

from cluster_kit.resolved import ProfileAt
from cluster_kit.run.verdict import profile_notes
from tests.unit.stories import Story

ASKED = ProfileAt(100, 2.0)


def noted(story: Story) -> list[str]:
    return list(profile_notes(ASKED, story.seen))


def test_a_successful_trace_is_no_note() -> None:
    story = Story.of().says(9, "chief-0", "profiled", folder="profile/now", missing=[], message="")
    assert noted(story) == []
    assert list(profile_notes(None, Story.of().seen)) == []


def test_missing_tasks_are_named() -> None:
    story = Story.of().says(9, "chief-0", "profiled", folder="f", missing=["ps-0"], message="")
    assert noted(story) == ["the profile lacks ps-0: no trace came from there in time"]


def test_a_step_that_was_never_reached_is_a_note() -> None:
    story = Story.of().says(3, "chief-0", "step", step=60)
    assert noted(story) == ["no profile: step 100 was never reached, the last reported one was 60"]
    assert noted(Story.of()) == [
        "no profile: the program reported no steps, so step 100 was never reached"
    ]


def test_a_run_that_ended_before_the_trace_was_saved_or_in_which_it_failed() -> None:
    story = Story.of().says(3, "chief-0", "step", step=100)
    assert noted(story) == [
        "no profile: step 100 was reached, but the run ended before the trace was saved"
    ]
    failed = story.says(9, "chief-0", "profiled", folder="", missing=[], message="error: no task")
    assert noted(failed) == ["no profile: error: no task"]
