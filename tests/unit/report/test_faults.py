"""The faults of a drill are on the lanes of their tasks."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_kit.report.facts import facts_of
from cluster_kit.report.lanes import Fault, faults_of
from tests.unit.report.runs import changed, told, trained

FREEZE: dict[str, Any] = {
    "number": 1, "kind": "freeze", "task": "ps-0", "for": 2.0, "injected_unix_s": 4.0,
    "over_unix_s": 6.0, "detected_after_s": 1.5, "detected_by": "silent", "going_on_after_s": 2.4,
    "steps_lost": 3,
}  # fmt: skip


def task(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in facts["tasks"] if one["name"] == name)


def test_a_fault_is_marked_for_its_whole_length() -> None:
    facts = facts_of(changed(faults=faults_of({"faults": [FREEZE]}, 0.0)))
    ps = task(facts, "ps-0")
    assert ps["over"] == [
        {"state": "broken", "begin": 4.0, "end": 6.0, "text": "fault 1: freeze for 2 s"}
    ]
    (mark,) = (mark for mark in ps["marks"] if mark["kind"] == "drill")
    assert mark["at"] == 4.0 and mark["text"].split("\n") == [
        "fault 1: freeze for 2 s, by the drill", "noticed after 1.5 s (silent)",
        "training continued after 2.4 s", "3 steps lost",
    ]  # fmt: skip
    assert facts["faults"] == [
        {"number": 1, "kind": "freeze", "task": "ps-0", "at": 4.0, "over": 6.0, "for_s": 2.0,
         "detected_after_s": 1.5, "going_on_after_s": 2.4, "steps_lost": 3,
         "detected_by": "silent"}
    ]  # fmt: skip
    assert not any(mark["kind"] == "drill" for mark in task(facts, "worker-0")["marks"])


def test_a_short_fault_is_only_marked_and_one_without_an_end_lasts_to_the_end() -> None:
    crash = Fault(1, "crash", "worker-0", 3.0)
    cut = Fault(2, "cut", "worker-1", 5.0, over=99.0)
    facts = facts_of(changed(faults=[crash, cut, Fault(3, "crash", "stranger-0", 4.0)]))
    assert task(facts, "worker-0")["over"] == []
    text = next(m["text"] for m in task(facts, "worker-0")["marks"] if m["kind"] == "drill")
    assert "not noticed" in text and "training did not continue" in text
    assert Fault(1, "crash", "worker-0", 3.0, steps_lost=1).text.endswith("\n1 step lost")
    assert [(span["begin"], span["end"]) for span in task(facts, "worker-1")["over"]] == [(5, 10)]


def test_faults_of_an_earlier_run_in_the_same_directory_are_left_out() -> None:
    never = {**FREEZE, "injected_unix_s": None}
    assert faults_of({"faults": [FREEZE, never]}, 5.0) == []
    assert facts_of(trained())["faults"] == []


@pytest.mark.parametrize("odd", [None, [], {}, {"faults": 3}, {"faults": [None, "x", {}]},
                                 {"faults": [{"injected_unix_s": "noon"}]}])  # fmt: skip
def test_a_drill_json_of_another_form_is_ignored(odd: object) -> None:
    assert faults_of(odd, 0.0) == []


def test_a_retry_has_its_reason() -> None:
    entries = [*trained().entries, told(4, "chief-0", "retry", attempt=2, reason="ps-0 was lost")]
    marks = task(facts_of(changed(entries=entries)), "chief-0")["marks"]
    assert {"kind": "retry", "at": 4, "text": "attempt 2: ps-0 was lost"} in marks
