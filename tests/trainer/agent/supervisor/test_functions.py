"""What the program of a coordinator waits for: functions that its workers have not finished."""

from __future__ import annotations

import json
import threading

import pytest

from trainer.agent.progress_file import Progress
from trainer.agent.supervisor import functions
from trainer.agent.supervisor.functions import Functions, Waited, Work


def of(scheduled: int, *finished: int, joined: int = 0) -> Functions:
    counts = {f"worker-{index}": count for index, count in enumerate(finished)}
    return Functions(scheduled, joined, counts)


def looked(*seen: Functions) -> list[tuple[int, int] | None]:
    waited = Waited()
    return [waited.look(one) for one in seen]


def test_a_program_that_continues_scheduling_waits_for_nothing() -> None:
    assert looked(of(10, 2), of(20, 11), of(30, 22)) == [None, None, None]


def test_finished_functions_are_reported_when_they_change_and_at_the_end() -> None:
    seen = looked(of(40, 9, 7), of(40, 16, 15), of(40, 16, 15), of(40, 16, 16), of(40, 20, 20))
    assert seen == [None, (31, 40), None, (32, 40), (40, 40)]


def test_each_wait_begins_at_the_last_one() -> None:
    again = [of(100, done, joined=40) for done in (50, 60, 100)]
    assert looked(of(40, 30), of(40, 35), *again) == [None, (35, 40), None, (20, 60), (60, 60)]
    assert looked(*again, of(100, 100, joined=100)) == [None, (20, 60), (60, 60), None]


def test_functions_are_forgotten_if_the_program_ends_before_they_do_and_none_has_failed() -> None:
    assert [of(40, 9, 7).forgotten, of(40, 20, 20, joined=40).forgotten] == [24, 0]
    assert Functions(40, 0, {"worker-0": 9}, failed=1).forgotten == 0


def test_functions_finished_before_the_first_look_were_not_waited_for() -> None:
    assert looked(of(40, 40), of(80, 80)) == [None, None]


def watched(
    tmp_path, monkeypatch, *texts: dict, program: str = "", at_end=None, builtin=False
) -> list[dict]:
    """Returns what is written if the program's counts have these values at each look."""
    monkeypatch.setattr(functions, "LOOK_S", 0.001)
    monkeypatch.setattr(functions, "SAY_EVERY_S", 0.0)
    over, left = threading.Event(), iter(texts)
    file = tmp_path / "chief-0.jsonl"
    progress = Progress(file)

    def counts() -> Functions:
        text = next(left, None)
        if text is None:
            over.set()
            return Functions.parse(json.dumps(at_end or texts[-1]) if texts else "")
        if program and text is texts[-1]:
            with file.open("a") as of_program:
                of_program.write(program)
        return Functions.parse(json.dumps(text))

    functions.watch("chief-0", tmp_path, progress, counts, over, builtin)
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_without_a_coordinator_nothing_is_reported(tmp_path, monkeypatch) -> None:
    assert watched(tmp_path, monkeypatch) == []


def test_waits_are_written_into_the_progress_file(tmp_path, monkeypatch) -> None:
    seen = [{"scheduled": 8, "finished": {"worker-0": done}} for done in (3, 5, 5)]
    written = [one for one in watched(tmp_path, monkeypatch, *seen) if one["event"] == "functions"]
    assert [(one["done"], one["of"]) for one in written] == [(5, 8)]


def test_each_workers_functions_are_written_and_count_as_steps(tmp_path, monkeypatch) -> None:
    seen = [
        {"scheduled": 90, "finished": {"worker-0": a, "worker-1": b}}
        for a, b in ((3, 1), (9, 1), (9, 1))
    ]
    output = watched(tmp_path, monkeypatch, *seen)
    worked = [one for one in output if one["event"] == "worked"]
    assert [one["functions"] for one in worked] == [
        {"worker-0": 3, "worker-1": 1},
        {"worker-0": 9, "worker-1": 1},
    ]
    assert ["per_s" in one for one in worked] == [False, True]
    steps = [one for one in output if one["event"] == "step"]
    assert [(one["step"], one["counted"]) for one in steps] == [(10, True)]


def test_functions_that_only_score_are_no_steps(tmp_path, monkeypatch) -> None:
    seen = [
        {"scheduled": 90, "finished": {"worker-0": done}, "scored": {"worker-0": scored}}
        for done, scored in ((3, 0), (9, 0), (12, 3), (20, 10))
    ]
    output = watched(tmp_path, monkeypatch, *seen)
    worked = [one for one in output if one["event"] == "worked"]
    assert [one["functions"]["worker-0"] for one in worked] == [3, 9, 9, 10]
    assert worked[2]["per_s"]["worker-0"] < worked[1]["per_s"]["worker-0"]
    assert [one["step"] for one in output if one["event"] == "step"] == [9, 10]


def test_steps_that_the_program_reports_take_precedence(tmp_path, monkeypatch) -> None:
    seen = [{"scheduled": 90, "finished": {"worker-0": done}} for done in (3, 9)]
    own = json.dumps({"time": 1.0, "event": "step", "step": 70}) + "\n"
    output = watched(tmp_path, monkeypatch, *seen, program=own)
    assert [one["step"] for one in output if one["event"] == "step"] == [70]


def test_functions_never_count_as_steps_of_a_builtin_program(tmp_path, monkeypatch) -> None:
    """It reports its steps, though not always before the first look."""
    seen = [{"scheduled": 90, "finished": {"worker-0": done}} for done in (3, 9)]
    output = watched(tmp_path, monkeypatch, *seen, builtin=True)
    events = {one["event"] for one in output}
    assert "worked" in events
    assert "step" not in events


def test_functions_that_finished_just_before_the_programs_end_are_written(tmp_path, monkeypatch):
    first, at_end = ({"scheduled": 90, "finished": {"worker-0": done}} for done in (30, 90))
    output = watched(tmp_path, monkeypatch, first, at_end=at_end)
    assert [one["step"] for one in output if one["event"] == "step"] == [90]


def test_the_last_look_has_no_speed_if_it_comes_at_once() -> None:
    work = Work(0.0)
    work.look(0.1, of(90, 10))
    assert work.look(2.1, of(90, 50))["per_s"] == {"worker-0": 20.0}
    assert work.look(2.2, of(90, 90), last=True) == {"functions": {"worker-0": 90}}
    assert work.look(2.3, of(90, 90), last=True) is None


def test_the_speed_of_functions_that_take_long_is_not_that_of_a_look() -> None:
    work = Work(0.0)
    work.look(2.0, of(10, 1))
    assert [work.look(now, of(10, 1)) for now in (4.0, 6.0, 8.0)] == [None] * 3
    assert work.look(10.0, of(10, 2))["per_s"] == {"worker-0": 0.125}


def test_a_worker_whose_functions_take_long_does_not_stand() -> None:
    """Worker 0 takes 5 s for each, worker 1 makes 10 in a second, and is lost after 20 s."""
    work, seen = Work(0.0), {}
    for now in range(2, 41, 2):
        seen[now] = work.look(float(now), of(999, now // 5, min(now, 20) * 10))
    slow = [found["per_s"]["worker-0"] for now, found in seen.items() if found and now > 12]
    assert all(0.1 < one < 0.3 for one in slow), slow
    fast = {now: found["per_s"]["worker-1"] for now, found in seen.items() if found and now > 2}
    assert fast[20] == 10.0 and not any(per_s for now, per_s in fast.items() if now > 21)


def test_the_speed_covers_the_time_since_the_last_event() -> None:
    work = Work(0.0)
    assert work.look(1.0, Functions()) is None
    assert work.look(2.0, Functions()) is None
    # The first functions are written at once, without a speed.
    assert work.look(2.4, of(20, 4)) == {"functions": {"worker-0": 4}}
    assert work.look(4.0, of(20, 9)) is None
    first = {"functions": {"worker-0": 14}, "per_s": {"worker-0": 5.0}}
    assert work.look(4.4, of(20, 14)) == first
    assert work.look(5.0, of(20, 15)) is None
    assert work.look(6.4, of(20, 19)) == {"functions": {"worker-0": 19}, "per_s": {"worker-0": 2.5}}
    assert work.look(8.4, of(20, 19)) is None
    # A restarted program counts from 0.
    assert work.look(10.4, of(20, 4)) is None
    assert work.look(12.4, of(20, 8)) == {"functions": {"worker-0": 8}, "per_s": {"worker-0": 2.0}}


def test_after_an_hour_the_speed_is_written_less_often() -> None:
    work = Work(0.0)
    written = [now for now in range(1, 7200) if work.look(float(now), of(10**6, now))]
    assert sum(now < 3600 for now in written) == pytest.approx(1800, abs=2)
    assert sum(now > 3600 for now in written) == pytest.approx(360, abs=2)
