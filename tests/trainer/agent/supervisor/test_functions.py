"""What the program of a coordinator waits for: functions that its workers have not finished."""

from __future__ import annotations

import json
import threading

from trainer.agent.progress_file import Progress
from trainer.agent.supervisor import stall
from trainer.agent.supervisor.stall import Functions, Waited


def of(scheduled: int, *finished: int, joined: int = 0) -> Functions:
    counts = {f"worker-{index}": count for index, count in enumerate(finished)}
    return Functions(scheduled, joined, counts)


def looked(*seen: Functions) -> list[tuple[int, int] | None]:
    waited = Waited()
    return [waited.look(one) for one in seen]


def test_a_program_that_goes_on_scheduling_waits_for_nothing() -> None:
    assert looked(of(10, 2), of(20, 11), of(30, 22)) == [None, None, None]


def test_how_many_are_done_is_said_when_it_changes_and_at_the_end() -> None:
    seen = looked(of(40, 9, 7), of(40, 16, 15), of(40, 16, 15), of(40, 16, 16), of(40, 20, 20))
    assert seen == [None, (31, 40), None, (32, 40), (40, 40)]


def test_each_wait_counts_from_the_last_one() -> None:
    again = [of(100, done, joined=40) for done in (50, 60, 100)]
    assert looked(of(40, 30), of(40, 35), *again) == [None, (35, 40), None, (20, 60), (60, 60)]
    assert looked(*again, of(100, 100, joined=100)) == [None, (20, 60), (60, 60), None]


def test_what_was_done_before_anyone_looked_was_not_waited_for() -> None:
    assert looked(of(40, 40), of(80, 80)) == [None, None]


def test_without_a_coordinator_nothing_is_said(tmp_path) -> None:
    over = threading.Event()
    asked = []

    def none_yet() -> Functions:
        asked.append(1)
        over.set()
        return Functions.parse("")

    stall.watch_functions(Progress(tmp_path / "chief-0.jsonl"), none_yet, over)
    assert asked and not (tmp_path / "chief-0.jsonl").read_text()


def test_it_is_written_into_the_progress_file(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(stall, "FUNCTIONS_LOOK_S", 0.001)
    over, texts = threading.Event(), iter([3, 5, 5])

    def left() -> Functions:
        if (done := next(texts, None)) is None:
            over.set()
            done = 5
        return Functions.parse(json.dumps({"scheduled": 8, "finished": {"worker-0": done}}))

    stall.watch_functions(Progress(tmp_path / "chief-0.jsonl"), left, over)
    (said,) = map(json.loads, (tmp_path / "chief-0.jsonl").read_text().splitlines())
    assert (said["event"], said["done"], said["of"]) == ("functions", 5, 8)
