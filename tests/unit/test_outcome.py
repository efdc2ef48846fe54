"""Who is to blame: the first task that failed, by its own words, not the flood that follows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from cluster_kit.cluster import Cluster
from cluster_kit.engine import Container, Event
from cluster_kit.observed import Observed
from cluster_kit.outcome import judge, metrics, outcome
from cluster_kit.progress import Entry
from tests.make import cluster

CLUSTER = cluster(evaluator=1)
WITHOUT_CHIEF = cluster(chief=0, ps=0, worker=2)


@dataclass(frozen=True)
class Story:
    """What was seen, told step by step."""

    seen: Observed

    @classmethod
    def of(cls, told: Cluster = CLUSTER) -> Story:
        story = cls(Observed.of(told))
        for task in told.tasks:
            story = story.start(0.0, task.name)
        return story.says(0.5, told.leader.name, "start", attempt=1)

    def _event(self, time: float, action: str, task: str, code: int | None) -> Story:
        return Story(self.seen.with_event(Event(time, action, task, code)))

    def start(self, time: float, task: str) -> Story:
        return self._event(time, "start", task, None)

    def dies(self, time: float, task: str, code: int) -> Story:
        return self._event(time, "die", task, code)

    def oom(self, time: float, task: str) -> Story:
        return self._event(time, "oom", task, None)

    def says(self, time: float, task: str, event: str, **fields: Any) -> Story:
        return Story(self.seen.with_entry(Entry(task, time, event, fields)))

    def ends(
        self, time: float, task: str, code: int, reason: str, message: str = "", *tasks: str
    ) -> Story:
        fields = {"exit_code": code, "reason": reason, "message": message, "tasks": list(tasks)}
        return self.says(time, task, "end", **fields).dies(time + 0.01, task, code)

    def servers_end(self, time: float) -> Story:
        story = self
        for task in ("worker-0", "worker-1", "ps-0", "ps-1"):
            story = story.ends(time, task, 0, "finished")
        return story


def chief_succeeds(story: Story, time: float = 60.0) -> Story:
    return story.ends(time, "chief-0", 0, "finished").servers_end(time + 0.2)


def evaluator_ends(story: Story, time: float = 61.0) -> Story:
    return story.ends(time, "evaluator-0", 0, "finished")


UNAVAILABLE = "UnavailableError: failed to connect to all addresses"

# what was seen, how the watch ended, exit code, reason, blame, part of the message
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
    "a hang that even the deadline inside does not end": (
        Story.of(), "overdue", 6, "job-deadline", "chief-0", "3600 s for the job",
    ),
    "the evaluator does not end within its grace": (
        chief_succeeds(Story.of())
        .ends(180, "evaluator-0", 6, "evaluator-grace", "ckpt-8 not scored"),
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


def test_without_a_chief_the_first_worker_to_fail_is_blamed() -> None:
    story = (
        Story.of(WITHOUT_CHIEF)
        .dies(5, "worker-1", 137).start(5.3, "worker-1")
        .ends(14, "worker-0", 1, "failed", UNAVAILABLE)
    )  # fmt: skip
    assert judge(WITHOUT_CHIEF, story.seen, "ended").blame == "worker-1"


def test_an_event_of_a_stranger_changes_nothing() -> None:
    seen = Observed.of(CLUSTER)
    assert seen.with_event(Event(1.0, "die", "worker-9", 1)) == seen


def test_lines_read_after_the_end_do_not_wake_a_task() -> None:
    story = Story.of().ends(9, "chief-0", 0, "finished").says(8.9, "chief-0", "epoch", loss=0.5)
    task = story.seen.tasks["chief-0"]
    assert (task.state, task.exit_code, task.loss) == ("ended", 0, 0.5)


def test_the_leader_names_the_peer_over_which_it_failed() -> None:
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(8, "worker-0", "failure", exit_code=1)
        .ends(9, "worker-0", 1, "failed", "worker-1: no such file", "worker-1")
    )
    verdict = judge(WITHOUT_CHIEF, story.seen, "ended")
    assert (verdict.exit_code, verdict.blame) == (5, "worker-1")
    assert verdict.message == "worker-1: no such file"


def test_who_dies_after_the_leaders_program_failed_fell_over_it() -> None:
    """The leader's container ends later than its program: it waits for what its peers say."""
    story = (
        Story.of(WITHOUT_CHIEF)
        .says(8, "worker-0", "failure", exit_code=1)
        .dies(8.5, "worker-1", 1)
        .ends(9, "worker-0", 1, "failed", "ValueError: shapes differ")
    )
    verdict = judge(WITHOUT_CHIEF, story.seen, "ended")
    assert (verdict.blame, verdict.message) == ("worker-0", "ValueError: shapes differ")


def test_traffic_is_what_the_tasks_counted_at_their_end() -> None:
    story = Story.of().says(9, "ps-0", "end", exit_code=0, rx_bytes=10, tx_bytes=2000)
    story = story.dies(9.1, "ps-0", 0)
    told = outcome(CLUSTER, judge(CLUSTER, story.seen, "interrupted"), story.seen, [], {}, "")
    assert [
        (task["rx_bytes"], task["tx_bytes"]) for task in told["tasks"] if task["role"] == "ps"
    ] == [(10, 2000), (None, None)]


def test_a_worker_that_was_cut_off_is_no_failure_but_noted() -> None:
    words = "the program was still running 10 s after the leader's end, and was stopped"
    story = (
        Story.of(WITHOUT_CHIEF)
        .ends(50, "worker-0", 0, "finished")
        .ends(60, "worker-1", 0, "cut-off", words)
    )
    verdict = judge(WITHOUT_CHIEF, story.seen, "ended")
    told = outcome(WITHOUT_CHIEF, verdict, story.seen, [], {}, "")
    assert (told["success"], told["notes"]) == (True, [f"worker-1: {words}"])


def test_a_task_goes_through_its_states_and_counts_its_restarts() -> None:
    story = Story(Observed.of(CLUSTER))
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
    assert states == ["created", "running", "ready", "training", "scoring", "ended", "running"]
    task = story.seen.tasks["ps-0"]
    assert (task.restarts, task.exit_code, task.step) == (1, None, 10)


def test_figures_that_are_no_numbers_are_left_out() -> None:
    story = Story.of().says(1, "chief-0", "step", step="many", loss=True, accuracy=1e300)
    task = story.seen.tasks["chief-0"]
    assert (task.step, task.loss, task.accuracy) == (None, None, None)


def container(name: str, **different: Any) -> Container:
    role, _, index = name.rpartition("-")
    usual = {
        "id": "f" * 12, "cluster": "demo", "name": name, "role": role, "index": int(index),
        "leader": name == "chief-0", "ip": "172.28.0.9", "gpus": ("1",), "state": "exited",
        "exit_code": 137, "restarts": 0, "oom": True, "error": "", "started": "", "finished": "",
        "output": "/out",
    }  # fmt: skip
    return Container(**{**usual, **different})


def test_the_outcome_holds_every_task_with_what_the_engine_says_of_it() -> None:
    story = Story.of().dies(9, "ps-1", 137).start(9.4, "ps-1").dies(10, "ps-1", 137)
    story = story.ends(11, "chief-0", 1, "failed", "ValueError: no")
    verdict = judge(CLUSTER, story.seen, "ended")
    told = outcome(CLUSTER, verdict, story.seen, [container("ps-1")], {"up": 1.23456}, "words")
    assert (told["cluster"], told["success"], told["exit_code"]) == ("demo", False, 5)
    assert (told["blame"], told["last_words"]) == ("ps-1", "words")
    assert told["timings_s"] == {"up": 1.235}
    tasks = {task["name"]: task for task in told["tasks"]}
    assert list(tasks) == [task.name for task in CLUSTER.tasks]
    assert tasks["ps-1"] == {
        "name": "ps-1", "role": "ps", "index": 1, "ip": "172.28.0.9", "gpu": ["1"],
        "gpu_seen": None,
        "exit_code": 137, "restarts": 1, "oom": True, "rx_bytes": None, "tx_bytes": None,
    }  # fmt: skip
    assert tasks["chief-0"]["exit_code"] == 1
    assert tasks["chief-0"]["ip"] == str(CLUSTER.leader.ip)


def test_the_evaluators_last_score_is_the_validation_accuracy_where_none_was_reported() -> None:
    story = (
        Story.of()
        .says(5, "evaluator-0", "evaluation", accuracy=0.5)
        .says(9, "evaluator-0", "evaluation", accuracy=0.9)
        .says(10, "chief-0", "metrics", test_accuracy=0.97)
    )
    found = metrics(story.seen, CLUSTER)
    assert found == {"validation_accuracy": 0.9, "test_accuracy": 0.97}
    reported = story.says(11, "chief-0", "metrics", validation_accuracy=0.8)
    assert metrics(reported.seen, CLUSTER)["validation_accuracy"] == 0.8


def test_metrics_are_always_valid_json() -> None:
    found = metrics(Story.of().says(1, "chief-0", "metrics", loss=float("nan")).seen, CLUSTER)
    assert json.loads(json.dumps(found, allow_nan=False)) == {"loss": None}
