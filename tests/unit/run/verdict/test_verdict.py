"""Which task is to blame: the first that failed, with its own error, not the errors that follow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster_kit.observe.user_requests import Asked
from cluster_kit.run.verdict import all_notes, judge, retry_notes
from tests.make import cluster
from tests.unit.stories import (
    CLUSTER,
    UNAVAILABLE,
    WITHOUT_CHIEF,
    Story,
    chief_succeeds,
    evaluator_ends,
)

# events, how the watch ended, exit code, reason, blame, part of the message
SCENARIOS = {
    "success": (evaluator_ends(chief_succeeds(Story.of())), "ended", 0, "finished", "", ""),
    "success, evaluator stopped by SIGTERM": (
        chief_succeeds(Story.of()).dies(61, "evaluator-0", 143), "ended", 0, "finished", "", "",
    ),
    "the chief raises": (
        Story.of().ends(9, "chief-0", 1, "failed", "ValueError: shapes differ").servers_end(9.2),
        "ended", 5, "failed", "chief-0", "ValueError: shapes differ",
    ),
    "a ps runs out of memory and the chief falls over it": (
        Story.of()
        .oom(9.0, "ps-1").dies(9.1, "ps-1", 137)
        .ends(10, "chief-0", 1, "failed", UNAVAILABLE).servers_end(10.2),
        "ended", 5, "failed", "ps-1", "ps-1 ended with exit code 137 (out of memory",
    ),
    "a ps is killed, comes back at once, and the chief falls over it all the same": (
        Story.of()
        .dies(9.0, "ps-1", 137).start(9.3, "ps-1").says(9.6, "ps-1", "ready")
        .ends(10, "chief-0", 1, "failed", UNAVAILABLE),
        "ended", 5, "failed", "ps-1", "killed by signal 9",
    ),
    "the engine tells the chief's death before the ps's, which was earlier": (
        Story.of()
        .ends(10, "chief-0", 1, "failed", UNAVAILABLE).dies(9.5, "ps-0", 139),
        "ended", 5, "failed", "ps-0", "killed by signal 11",
    ),
    "a worker is killed, comes back, and the job succeeds": (
        evaluator_ends(chief_succeeds(Story.of().dies(5, "worker-1", 137).start(5.4, "worker-1"))),
        "ended", 0, "finished", "", "",
    ),
    "a worker is killed, comes back, and long after the chief fails by itself": (
        Story.of().dies(5, "worker-1", 137).start(5.4, "worker-1")
        .ends(90, "chief-0", 1, "failed", "OSError: disk full"),
        "ended", 5, "failed", "chief-0", "OSError: disk full",
    ),
    "a worker never comes back, and the chief fails": (
        Story.of().dies(5, "worker-1", 137).ends(90, "chief-0", 1, "failed", UNAVAILABLE),
        "ended", 5, "failed", "worker-1", "killed by signal 9",
    ),
    "a ps fails an attempt that was retried; the chief fails the next by itself": (
        Story.of()
        .dies(9, "ps-0", 137).start(9.3, "ps-0").says(10, "chief-0", "retry", attempt=1)
        .says(10.5, "chief-0", "start", attempt=2)
        .ends(20, "chief-0", 1, "failed", "KeyError: 'x'"),
        "ended", 5, "failed", "chief-0", "KeyError",
    ),
    "the evaluator dies first, but the chief fails by itself": (
        Story.of().dies(5, "evaluator-0", 1).ends(9, "chief-0", 1, "failed", "ValueError: no"),
        "ended", 5, "failed", "chief-0", "ValueError: no",
    ),
    "servers stopped by the end are nobody's fault": (
        Story.of().dies(8.9, "ps-0", 143).dies(8.95, "worker-0", 0)
        .ends(9, "chief-0", 3, "failed", "exit 3"),
        "ended", 5, "failed", "chief-0", "exit 3",
    ),
    "the chief runs out of memory": (
        Story.of().oom(8.9, "chief-0").ends(9, "chief-0", 137, "failed", "killed by signal 9"),
        "ended", 5, "failed", "chief-0", "killed by signal 9 (out of memory: raise its `memory`",
    ),
    "a worker runs out of memory, and is not back in time": (
        Story.of().oom(9, "worker-1").dies(9.1, "worker-1", 137)
        .ends(40, "chief-0", 6, "silent", "worker-1's server has not answered", "worker-1"),
        "ended", 6, "silent", "worker-1", "worker-1 ran out of memory: raise its `memory` limit",
    ),
    "a worker is killed from outside, and does not come back": (
        Story.of().stopped_from_outside(9, "worker-1", 137)
        .says(20, "chief-0", "silent", of="worker-1", last_heard=9.0)
        .ends(40, "chief-0", 6, "silent", "worker-1 has been silent (frozen)", "worker-1"),
        "ended", 6, "silent", "worker-1", "worker-1 did not answer for 11 s, since its container "
        "had ended (exit code 137) (it was ended from outside",
    ),
    "a worker runs out of memory until no restart is left": (
        Story.of().starves(9, "worker-1", times=4)
        .ends(40, "chief-0", 6, "silent", "worker-1's server has not answered", "worker-1"),
        "ended", 5, "failed", "worker-1", "(out of memory: raise its `memory` limit, if any) "
        "(4 times; 3 retries); worker-1's server has not answered",
    ),
    "a worker runs out of memory, comes back, and is silent later": (
        Story.of().oom(9, "worker-1").dies(9.1, "worker-1", 137).start(9.5, "worker-1")
        .ends(90, "chief-0", 6, "silent", "worker-1's server has not answered", "worker-1"),
        "ended", 6, "silent", "worker-1", "worker-1's server has not answered",
    ),
    "the start deadline names worker-1": (
        Story.of().ends(30, "chief-0", 6, "start-deadline", "worker-1 is missing", "worker-1"),
        "ended", 6, "start-deadline", "worker-1", "worker-1 is missing",
    ),
    "the start deadline names the first of several": (
        Story.of().ends(30, "chief-0", 6, "start-deadline", "missing", "ps-0", "worker-1"),
        "ended", 6, "start-deadline", "ps-0", "missing",
    ),
    "the job deadline": (
        Story.of().ends(600, "chief-0", 6, "job-deadline", "600 s passed").servers_end(600.2),
        "ended", 6, "job-deadline", "chief-0", "600 s passed",
    ),
    "the job deadline, long after the last step": (
        Story.of().says(500, "chief-0", "step", step=7)
        .ends(600, "chief-0", 6, "job-deadline", "still running").servers_end(600.2),
        "ended", 6, "job-deadline", "chief-0", "still running; the last step was 100 s before",
    ),
    "a hang that even the deadline inside does not end": (
        Story.of(), "overdue", 6, "job-deadline", "chief-0", "3600 s for the job",
    ),
    "the evaluator does not end within its grace": (
        chief_succeeds(Story.of())
        .ends(180, "evaluator-0", 6, "evaluator-grace", "ckpt-8 not scored"),
        "ended", 6, "evaluator-grace", "evaluator-0", "ckpt-8 not scored",
    ),
    "the evaluator does not end within its grace, and is started again": (
        chief_succeeds(Story.of())
        .ends(180, "evaluator-0", 6, "evaluator-grace", "ckpt-8 not scored")
        .start(180.5, "evaluator-0"),
        "ended", 6, "evaluator-grace", "evaluator-0", "ckpt-8 not scored",
    ),
    "the evaluator never ends": (
        chief_succeeds(Story.of()),
        "ended", 6, "evaluator-grace", "evaluator-0", "still running after its grace",
    ),
    "the evaluator crashes": (
        chief_succeeds(Story.of()).ends(61, "evaluator-0", 1, "failed", "ValueError: no model"),
        "ended", 5, "failed", "evaluator-0", "ValueError: no model",
    ),
    "the evaluator is killed without a last word": (
        chief_succeeds(Story.of()).oom(61, "evaluator-0").dies(61, "evaluator-0", 137),
        "ended", 5, "failed", "evaluator-0", "exit code 137 (out of memory",
    ),
    "the evaluator crashed once and came back": (
        evaluator_ends(
            chief_succeeds(Story.of().dies(5, "evaluator-0", 1).start(5.3, "evaluator-0"))
        ),
        "ended", 0, "finished", "", "",
    ),
    "the leader is killed without a last word": (
        Story.of().dies(9, "chief-0", 137), "ended", 5, "failed", "chief-0",
        "chief-0 ended with exit code 137 (killed by signal 9)",
    ),
    "the leader's last word of an earlier life does not count": (
        Story.of()
        .ends(9, "chief-0", 6, "start-deadline", "old", "ps-0")
        .start(20, "chief-0").says(20.5, "chief-0", "start", attempt=1).dies(30, "chief-0", 139),
        "ended", 5, "failed", "chief-0", "killed by signal 11",
    ),
    "interrupted": (Story.of(), "interrupted", 130, "interrupted", "", "interrupted"),
    "interrupted in the middle of a failure": (
        Story.of().dies(9, "ps-0", 137), "interrupted", 130, "interrupted", "", "interrupted",
    ),
}  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_verdict_on(scenario: str) -> None:
    story, how, code, reason, blame, message = SCENARIOS[scenario]
    verdict = judge(CLUSTER, story.seen, how)
    assert (verdict.exit_code, verdict.reason, verdict.blame) == (code, reason, blame)
    assert verdict.success == (code == 0)
    assert message in verdict.message


def test_without_a_chief_the_first_failed_worker_is_blamed() -> None:
    story = (
        Story.of(WITHOUT_CHIEF)
        .dies(5, "worker-1", 137).start(5.3, "worker-1")
        .ends(14, "worker-0", 1, "failed", UNAVAILABLE)
    )  # fmt: skip
    assert judge(WITHOUT_CHIEF, story.seen, "ended").blame == "worker-1"


def test_the_leader_names_the_peer_because_of_which_it_failed() -> None:
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(8, "worker-0", "failure", exit_code=1)
        .ends(9, "worker-0", 1, "failed", "worker-1: no such file", "worker-1")
    )
    verdict = judge(WITHOUT_CHIEF, story.seen, "ended")
    assert (verdict.exit_code, verdict.blame) == (5, "worker-1")
    assert verdict.message == "no such file"


def test_a_task_that_ends_after_the_leaders_failure_is_not_blamed() -> None:
    """The leader's container ends later than its program: it waits for its peers' reports."""
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(8, "worker-0", "failure", exit_code=1)
        .dies(8.5, "worker-1", 1)
        .ends(9, "worker-0", 1, "failed", "ValueError: shapes differ")
    )
    verdict = judge(WITHOUT_CHIEF, story.seen, "ended")
    assert (verdict.blame, verdict.message) == ("worker-0", "ValueError: shapes differ")


def test_a_task_that_ran_out_of_memory_before_the_leaders_failure_is_blamed() -> None:
    """Its end comes later: the kernel first frees its memory."""
    story = (
        Story.of(WITHOUT_CHIEF)
        .oom(7.8, "worker-1")
        .says(8, "worker-0", "failure", exit_code=1)
        .dies(8.5, "worker-1", 137)
        .ends(9, "worker-0", 1, "failed", UNAVAILABLE)
    )
    verdict = judge(WITHOUT_CHIEF, story.seen, "ended")
    assert verdict.blame == "worker-1" and "out of memory" in verdict.message


def test_a_leader_whose_attempt_before_ran_out_of_memory_fails_by_itself() -> None:
    story = (
        Story.of(WITHOUT_CHIEF)
        .oom(4, "worker-0")
        .says(4.1, "worker-0", "failure", exit_code=137)
        .says(4.2, "worker-0", "start", attempt=2)
        .ends(9, "worker-0", 1, "failed", "ValueError: shapes differ")
    )
    assert judge(WITHOUT_CHIEF, story.seen, "ended").message == "ValueError: shapes differ"
    note = "worker-0 ran out of memory (raise its `memory` limit, if any), and was started again"
    assert all_notes(WITHOUT_CHIEF, story.seen) == [note]


def test_the_note_of_a_leaders_attempt_says_that_it_ran_out_of_memory() -> None:
    killed = "the program was killed by SIGKILL"
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(1, "worker-0", "start", attempt=1)
        .oom(4, "worker-0")
        .says(4.1, "worker-0", "failure", exit_code=137)
        .says(4.2, "worker-0", "retry", attempt=2, reason=killed)
        .says(4.3, "worker-0", "start", attempt=2)
        .says(6, "worker-0", "failure", exit_code=137)
        .says(6.1, "worker-0", "retry", attempt=3, reason=killed)
    )
    notes = [note for _, note in retry_notes(CLUSTER, story.seen)]
    again = f"the program of worker-0 was started again: {killed}"
    assert notes == [f"{again} (out of memory)", again]


@pytest.mark.parametrize("limit", ["1g", None])
def test_a_server_without_memory_has_a_hint_that_fits_its_limit(limit: str | None) -> None:
    limited = cluster(role={"ps": {"memory": limit}}) if limit else CLUSTER
    story = Story.of(limited).starves(1, "ps-0", times=9)
    verdict = judge(limited, story.seen, "memory")
    assert verdict.message.startswith("ps-0 ran out of memory twice, soon after its start")
    assert ("raise `memory` in [role.ps]" in verdict.hint) == bool(limit)


def test_a_task_that_failed_first_is_blamed_even_if_it_was_stopped_with_the_job() -> None:
    """It was restarted, and then stopped because the leader had failed in the same way."""
    story = (
        Story.of(WITHOUT_CHIEF)
        .ends(8, "worker-1", 1, "failed", "FileNotFoundError: no MNIST")
        .start(8.5, "worker-1")
        .says(9, "worker-0", "failure", exit_code=1)
        .ends(10, "worker-0", 1, "failed", "FileNotFoundError: no MNIST")
        .ends(11, "worker-1", 0, "finished", "the job ended (exit code 1 of worker-0)")
    )
    verdict = judge(WITHOUT_CHIEF, story.seen, "ended")
    assert (verdict.blame, verdict.message) == ("worker-1", "FileNotFoundError: no MNIST")


def test_an_evaluator_that_failed_until_its_grace_time_ended_is_reported_with_its_error() -> None:
    story = Story.of().ends(5, "evaluator-0", 1, "failed", "InternalError: no such job")
    story = chief_succeeds(story.start(6, "evaluator-0"))
    for time in (70, 90):
        story = story.ends(time, "evaluator-0", 1, "failed", "InternalError: no such job")
        story = story.start(time + 1, "evaluator-0")
    verdict = judge(CLUSTER, story.seen, "ended")
    assert (verdict.reason, verdict.blame) == ("evaluator-grace", "evaluator-0")
    assert verdict.message == (
        "evaluator-0 was still running after its grace, after it had failed 3 times: "
        "InternalError: no such job"
    )


def test_only_a_run_that_can_have_trained_continues_after_ctrl_c() -> None:
    began = Story.of()
    assert judge(CLUSTER, began.seen, "interrupted").hint == ""
    reports_no_steps = began.says(3.0, "chief-0", "ready")
    assert "`--resume`" in judge(CLUSTER, reports_no_steps.seen, "interrupted").hint
    trained = began.says(3.0, "chief-0", "step", step=7)
    assert "`--resume`" in judge(CLUSTER, trained.seen, "interrupted").hint


def test_notes_on_what_happened_are_in_the_order_of_time() -> None:
    story = Story.of().says(20, "chief-0", "silent", of="ps-0", last_heard=9)
    story = story.says(30, "chief-0", "retry", attempt=2, reason="ps-0 is silent")
    requests = [Asked(at, "kill", ("ps-0",), from_page=True) for at in (10.0, 25.0, 40.0)]
    told = all_notes(CLUSTER, replace(story.seen, requests=tuple(requests)))
    kinds = [note.partition(" at ")[0].partition(" for ")[0] for note in told[:5]]
    assert kinds == [
        "ps-0 was killed", "ps-0 has been silent", "ps-0 was killed",
        "the program of chief-0 was started again: ps-0 is silent", "ps-0 was killed",
    ]  # fmt: skip
