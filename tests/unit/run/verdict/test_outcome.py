"""The contents of outcome.json: the verdict, every task, notes and metrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.platforms.engine import Container
from cluster_kit.resolved import Cluster
from cluster_kit.run.outcome import metrics, outcome_of, task_outcome
from cluster_kit.run.run import training_times
from cluster_kit.run.verdict import LONGEST_NOTE, Ending, judge
from cluster_kit.util.masking import LEFT_OUT
from cluster_kit.workspace import RunDirectory
from tests.unit.stories import CLUSTER, WITHOUT_CHIEF, Story, chief_succeeds, container

RUN = RunDirectory(Path("/runs/demo/1"))


def told(
    of: Cluster, story: Story, *containers: Container, ending: Ending = "ended", words: str = ""
) -> dict[str, Any]:
    """Returns the outcome.json of a run with these events."""
    verdict = judge(of, story.seen, ending)
    return outcome_of(of, verdict, story.seen, containers, RUN, last_words=words).as_json()


def test_bytes_from_before_a_restart_count() -> None:
    story = Story.of().uses(2, "ps-0", 2, 1, 700).uses(3, "ps-0", 3, 1, 900)
    story = story.dies(4, "ps-0", 137).start(5, "ps-0").uses(6, "ps-0", 1, 1, 50)
    story = story.says(9, "ps-0", "end", exit_code=0, rx_bytes=10, tx_bytes=80)
    task = task_outcome("ps-0", story.seen, None)
    assert (task.rx_bytes, task.tx_bytes) == (10, 980)


def test_traffic_is_the_tasks_own_count_at_their_end() -> None:
    story = Story.of().says(9, "ps-0", "end", exit_code=0, rx_bytes=10, tx_bytes=2000)
    story = story.dies(9.1, "ps-0", 0)
    tasks = told(CLUSTER, story, ending="interrupted")["tasks"]
    assert [(task["rx_bytes"], task["tx_bytes"]) for task in tasks if task["role"] == "ps"] == [
        (10, 2000),
        (None, None),
    ]


def test_the_use_of_a_task_has_a_mean_and_a_peak() -> None:
    story = Story.of()
    for second, cpu_s, memory, sent in ((1, 1.0, 10, 0), (2, 1.5, 50, 900), (4, 4.5, 30, 1000)):
        story = story.uses(second, "ps-0", cpu_s, memory, sent)
    tasks = {task["name"]: task for task in told(CLUSTER, story)["tasks"]}
    assert tasks["ps-0"]["usage"] == {
        "cpus_mean": 1.167, "cpus_peak": 1.5, "memory_mean": 37, "memory_peak": 50,
        "network_peak_bps": 900, "gpu_busy_mean": None, "gpu_memory_peak": None,
    }  # fmt: skip
    assert tasks["worker-0"]["usage"] is None


def test_a_worker_that_was_cut_off_is_no_failure_but_noted() -> None:
    words = "the program was still running 10 s after the leader's end, and was stopped"
    story = (
        Story.of(WITHOUT_CHIEF)
        .ends(50, "worker-0", 0, "finished")
        .ends(60, "worker-1", 0, "cut-off", words)
    )
    found = told(WITHOUT_CHIEF, story)
    note = f'worker-1: {words}; `success = "all"` waits for it'
    assert (found["success"], found["notes"]) == (True, [note])


def test_a_worker_that_was_cut_off_after_a_failure_is_noted_with_the_failure() -> None:
    story = worker_fails(1).ends(50, "worker-0", 0, "finished")
    (note,) = told_after(story.ends(60, "worker-1", 0, "cut-off", "it was stopped"))[0]
    assert note == (
        "worker-1: it was stopped; it failed once (exit code 1), and the leader ended without it; "
        "its last words: ValueError: no"
    )


def test_a_cut_between_two_tasks_is_noted_with_both_names() -> None:
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(30, "worker-0", "unanswered", of="worker-1", by="worker-2", seconds=10.2)
        .says(31, "worker-0", "unanswered", of="nobody-7", by="worker-1", seconds=10.2)
        .ends(50, "worker-0", 0, "finished")
    )
    assert told(WITHOUT_CHIEF, story)["notes"] == [
        "worker-2 had no answer from worker-1 for 10.2 s or more (the network between them was cut;"
        " both answered worker-0)"
    ]


def test_a_further_attempt_of_the_leaders_program_is_noted_with_its_reason() -> None:
    note = "the program of worker-0 was started again: no progress for 30 s"
    once = Story.of(WITHOUT_CHIEF).says(30, "worker-0", "retry", attempt=2, reason=note[-20:])
    twice = once.says(40, "worker-0", "retry", attempt=3, reason=note[-20:])
    notes = [
        told(WITHOUT_CHIEF, story.ends(50, "worker-0", 0, "finished"))["notes"]
        for story in (once, twice)
    ]
    assert notes == [[note], [f"{note} (2 times)"]]


def test_the_note_on_a_further_attempt_names_the_task_that_failed_before_the_leader() -> None:
    story = (
        Story.of(WITHOUT_CHIEF)
        .ends(20, "worker-1", 1, "failed", "RuntimeError: bad sector\n  File train.py")
        .says(23, "worker-0", "failure", exit_code=1)
        .says(24, "worker-0", "retry", attempt=2, reason="worker-0 ended with 1")
        .says(24, "worker-0", "start", attempt=2)
        .says(33, "worker-0", "failure", exit_code=1)
        .says(34, "worker-0", "retry", attempt=3, reason="worker-0 ended with 1")
        .ends(50, "worker-0", 0, "finished")
    )
    again = "the program of worker-0 was started again: worker-0 ended with 1"
    notes = told(WITHOUT_CHIEF, story)["notes"]
    assert notes[:2] == [f"{again}; worker-1 failed before: RuntimeError: bad sector", again]


def test_time_that_training_waited_is_noted() -> None:
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(20, "worker-0", "waiting", of="worker-1", seconds=5.0)
        .says(28, "worker-0", "waited", of="worker-1", seconds=13.1)
        .says(30, "worker-0", "waiting", of="worker-1", seconds=5.0)
        .says(31, "worker-0", "waiting", of="nobody-7", seconds=5.0)
        .ends(50, "worker-0", 0, "finished")
    )
    assert told(WITHOUT_CHIEF, story)["notes"] == [
        "training waited 13.1 s for worker-1", "training waited for worker-1 until the end",
    ]  # fmt: skip


def test_training_waits_until_its_leader_is_restarted() -> None:
    """By a user, who stops and starts the cluster, or by itself."""
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(20, "worker-0", "waiting", of="worker-1", seconds=5.0)
        .ends(23.2, "worker-0", 143, "stopped")
        .start(30, "worker-0")
        .says(30.1, "worker-0", "start", attempt=1)
        .says(40, "worker-0", "waiting", of="worker-1", seconds=5.0)
        .says(42, "worker-0", "start", attempt=2)
        .ends(50, "worker-0", 0, "finished")
    )
    again = "for worker-1, until worker-0 was started again"
    assert told(WITHOUT_CHIEF, story)["notes"] == [
        f"training waited 8.2 s {again}",
        f"training waited 7.0 s {again}",
        "worker-0 ended with exit code 143 (killed by signal 15), and was started again",
    ]


def test_a_task_that_was_ended_from_outside_is_noted() -> None:
    note = "worker-1 was ended from outside, by `docker stop`, say, and not started again"
    story = Story.of(WITHOUT_CHIEF).stopped_from_outside(20, "worker-1")
    metrics = {"steps_of_worker-0": 900, "steps_of_worker-1": 0}
    without_it = story.says(49, "worker-0", "metrics", **metrics).ends(
        50, "worker-0", 0, "finished"
    )
    assert told(WITHOUT_CHIEF, without_it)["notes"] == [note]
    with_it = story.start(30, "worker-1").ends(50, "worker-0", 0, "finished")
    assert told(WITHOUT_CHIEF, with_it.stopped_from_outside(51, "worker-1"))["notes"] == [
        "worker-1 ended with exit code 143 (killed by signal 15), and was started again"
    ]


def test_an_evaluator_that_was_ended_from_outside_is_noted() -> None:
    story = chief_succeeds(Story.of()).stopped_from_outside(61, "evaluator-0")
    found = told(CLUSTER, story)
    assert (found["success"], found["notes"]) == (
        True,
        ["evaluator-0 was ended from outside, by `docker stop`, say, and not started again"],
    )


def test_a_straggler_is_noted() -> None:
    begun = {"of": "worker-1", "seconds": 20.0, "share": 0.2, "message": "worker-1 is a straggler"}
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(30, "worker-0", "straggling", **begun)
        .says(31, "worker-0", "straggling", **(begun | {"of": "nobody-7"}))
        .says(49, "worker-0", "straggled", of="worker-1", seconds=39.0, share=0.25, message="")
        .ends(50, "worker-0", 0, "finished")
    )
    found = told(WITHOUT_CHIEF, story)
    [note] = found["notes"]
    assert found["success"] and note.startswith("worker-1 is a straggler (from ")
    assert note.endswith(", 39 s, with 25% of the steps)")


def test_the_length_of_texts_in_notes_is_bounded() -> None:
    words = {"of": "worker-1", "seconds": 20.0, "message": "m" * 20_000}
    story = Story.of(WITHOUT_CHIEF).says(30, "worker-0", "straggling", **words)
    [note] = told(WITHOUT_CHIEF, story.ends(50, "worker-0", 0, "finished"))["notes"]
    assert len(note) == LONGEST_NOTE and note.endswith(LEFT_OUT)


def test_no_step_is_before_the_start_of_the_run() -> None:
    story = Story.of().says(9, "chief-0", "step", step=1).ends(50, "chief-0", 0, "finished")
    ended = story.seen.ends("chief-0")[-1]
    times = training_times(story.seen, ended - 1)
    assert times == {"first_step": 0, "train": 1}


def test_the_training_begins_with_the_first_function_of_a_coordinators_worker() -> None:
    story = (
        Story.of()
        .says(5, "worker-0", "step", own_steps=3, counted=True)
        .says(7, "worker-1", "step", step=1)
        .says(8, "chief-0", "step", step=4)
        .ends(11, "chief-0", 0, "finished")
    )
    assert training_times(story.seen, 0.0)["train"] == pytest.approx(6, abs=0.1)


def worker_fails(times: int, words: str = "ValueError: no\nsecond line") -> Story:
    """Returns the events of worker 1 of two that run the program; it restarts after each
    failure."""
    story = Story.of(WITHOUT_CHIEF)
    for i in range(times):
        story = story.ends(5.0 + i, "worker-1", 1, "failed", words).start(5.5 + i, "worker-1")
        story = story.says(5.6 + i, "worker-1", "start", attempt=1)
    return story


def told_after(story: Story, *containers: Container) -> tuple[list[str], int | None]:
    """Returns the notes, and the exit code of worker 1."""
    found = told(WITHOUT_CHIEF, story, *containers)
    (code,) = (task["exit_code"] for task in found["tasks"] if task["name"] == "worker-1")
    return found["notes"], code


@pytest.mark.parametrize(("times", "shown"), [(1, "once"), (2, "twice"), (3, "3 times")])
def test_a_worker_that_the_leader_finished_without_is_noted(times: int, shown: str) -> None:
    story = worker_fails(times).ends(60, "worker-0", 0, "finished")
    note = f"worker-1: failed {shown} (exit code 1), and the leader ended without it"
    expected = ([f"{note}; its last words: ValueError: no"], 1)
    assert told_after(story) == expected
    restarting = container("worker-1", state="restarting", exit_code=None)
    assert told_after(story, restarting) == expected
    over_its_end = story.ends(61, "worker-1", 0, "finished", "ValueError: no", after_job=True)
    assert told_after(over_its_end) == (expected[0], 0)


def test_a_worker_that_failed_and_was_restarted_is_noted() -> None:
    story = worker_fails(2).ends(60, "worker-0", 0, "finished")
    note = "worker-1: failed twice (exit code 1), and was started again"
    expected = [f"{note}; its last words: ValueError: no"]
    assert told_after(story.ends(61, "worker-1", 0, "finished")) == (expected, 0)
    trains = worker_fails(2).says(9, "worker-1", "step", step=3)
    assert told_after(trains.ends(60, "worker-0", 0, "finished")) == (expected, None)


def test_a_worker_that_fell_over_another_tasks_end_and_was_restarted_is_not_noted() -> None:
    lost = worker_fails(1, "UnavailableError: Socket closed").says(9, "worker-1", "step", step=3)
    assert told_after(lost.ends(60, "worker-0", 0, "finished")) == ([], None)
    again = worker_fails(1).start(5.4, "worker-0").says(5.5, "worker-0", "start", attempt=1)
    again = again.says(6, "worker-0", "start", attempt=2).says(9, "worker-1", "step", step=3)
    assert told_after(again.ends(60, "worker-0", 0, "finished"))[0] == []


def test_the_cause_of_the_leaders_end_is_in_the_verdict_and_not_in_a_note() -> None:
    story = worker_fails(3).ends(60, "worker-0", 5, "failed", "worker-1 failed", "worker-1")
    assert told_after(story) == ([], 1)


def test_a_note_is_one_line_of_bounded_length() -> None:
    story = worker_fails(1, "x" * 1000 + "\ny").ends(60, "worker-0", 0, "finished")
    (note,) = told_after(story)[0]
    assert len(note) < 300 and note.endswith("x…")
    notes = told_after(worker_fails(1, "").ends(60, "worker-0", 0, "finished"))[0]
    assert notes == ["worker-1: failed once (exit code 1), and the leader ended without it"]


def test_a_model_that_the_leader_left_in_tmp_is_noted() -> None:
    end = {"exit_code": 0, "reason": "finished", "in_tmp": ["/tmp/a", "/tmp/b"]}
    story = Story.of(WITHOUT_CHIEF).says(60, "worker-0", "end", **end).dies(60, "worker-0", 0)
    (note,) = told_after(story)[0]
    assert note == "worker-0 has saved below /tmp, which is not kept (/output is): /tmp/a, /tmp/b"


def test_functions_that_a_coordinator_did_not_wait_for_are_noted() -> None:
    end = {"exit_code": 0, "reason": "finished", "forgotten": 1201}
    story = Story.of(WITHOUT_CHIEF).says(60, "worker-0", "end", **end).dies(60, "worker-0", 0)
    assert told_after(story)[0] == [
        "worker-0 ended before the workers had finished 1,201 of the functions that it had "
        "scheduled: `coordinator.join()` waits for them"
    ]


def test_the_outcome_has_every_task_with_the_engines_facts() -> None:
    story = Story.of().dies(9, "ps-1", 137).start(9.4, "ps-1").dies(10, "ps-1", 137)
    story = story.ends(11, "chief-0", 1, "failed", "ValueError: no")
    found = told(CLUSTER, story, container("ps-1"), words="words")
    assert (found["cluster"], found["success"], found["exit_code"]) == ("demo", False, 5)
    assert (found["blame"], found["last_words"]) == ("ps-1", "words")
    assert found["run"] == "/runs/demo/1"
    tasks = {task["name"]: task for task in found["tasks"]}
    assert list(tasks) == [task.name for task in CLUSTER.tasks]
    assert tasks["ps-1"] == {
        "name": "ps-1", "role": "ps", "index": 1, "ip": "172.28.0.9", "gpu": ["1"],
        "gpu_seen": None,
        "exit_code": 137, "restarts": 1, "oom": True, "rx_bytes": None, "tx_bytes": None,
        "usage": None,
    }  # fmt: skip
    assert tasks["chief-0"]["exit_code"] == 1
    assert tasks["chief-0"]["ip"] == str(CLUSTER.leader.ip)


def test_without_a_reported_validation_accuracy_the_evaluators_last_score_is_used() -> None:
    story = (
        Story.of()
        .says(5, "evaluator-0", "evaluation", accuracy=0.5)
        .says(9, "evaluator-0", "evaluation", accuracy=0.9)
        .says(10, "chief-0", "metrics", test_accuracy=0.97)
    )
    found = metrics(story.seen)
    assert found == {"validation_accuracy": 0.9, "test_accuracy": 0.97}
    reported = story.says(11, "chief-0", "metrics", validation_accuracy=0.8)
    assert metrics(reported.seen)["validation_accuracy"] == 0.8


def finished(story: Story) -> Story:
    return story.ends(11, "chief-0", 0, "finished")


def test_without_reported_metrics_the_leaders_last_loss_and_accuracy_count() -> None:
    story = (
        Story.of()
        .says(8, "chief-0", "step", step=1, loss=0.5)
        .says(9, "chief-0", "epoch", epoch=1, loss=0.25, accuracy=0.75)
        .says(9, "worker-0", "step", step=1, loss=3.0)
    )
    interrupted = told(CLUSTER, story, ending="interrupted")["metrics"]
    assert interrupted == {"loss": 0.25, "accuracy": 0.75}, "it was told to end after that"
    assert metrics(story.seen) == {}
    assert metrics(finished(story).seen) == {"accuracy": 0.75, "loss": 0.25}
    assert metrics(finished(story.says(10, "chief-0", "metrics", f1=0.9)).seen) == {"f1": 0.9}
    diverged = story.says(10, "chief-0", "step", step=2, loss=float("nan"))
    assert metrics(finished(diverged).seen) == {"accuracy": 0.75, "loss": None}
    validated = story.says(9, "chief-0", "epoch", epoch=2, val_loss=0.3, val_accuracy=0.7)
    later = validated.says(10, "chief-0", "epoch", epoch=3, loss=0.2)
    assert metrics(finished(later).seen) == {
        "accuracy": 0.75, "loss": 0.2, "validation_accuracy": 0.7, "validation_loss": 0.3,
    }  # fmt: skip
    measured = later.says(10, "chief-0", "epoch", epoch=4, scores={"mae": 0.5, "val_mae": 0.6})
    assert metrics(finished(measured).seen).items() >= {"mae": 0.5, "validation_mae": 0.6}.items()
    again = measured.says(11, "chief-0", "epoch", epoch=1, loss=0.9)
    assert metrics(finished(again).seen) == {"accuracy": 0.75, "loss": 0.9}, "of the last `fit`"
    nan = {"val_loss": float("nan"), "scores": {"val_mae": float("nan")}}
    failed = metrics(finished(measured.says(11, "chief-0", "epoch", epoch=5, **nan)).seen)
    assert failed["validation_loss"] is failed["validation_mae"] is None, "not of epoch 3 or 4"
    twice = measured.says(11, "chief-0", "epoch", epoch=5)  # a line without NaN, then all of it
    twice = twice.says(11, "chief-0", "epoch", epoch=5, loss=float("nan"))
    assert metrics(finished(twice).seen)["validation_mae"] == 0.6, "one epoch, not another `fit`"
    scored = later.says(10, "evaluator-0", "evaluation", accuracy=0.9)
    assert metrics(finished(scored).seen)["validation_accuracy"] == 0.9


def test_metrics_are_always_valid_json() -> None:
    found = metrics(Story.of().says(1, "chief-0", "metrics", loss=float("nan")).seen)
    assert json.loads(json.dumps(found, allow_nan=False)) == {"loss": None}
