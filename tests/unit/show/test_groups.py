"""Fifty tasks on a screen: tasks in a normal state share a row; and the progress of the
training."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State, TaskView
from cluster_kit.observe.usage import Usage
from cluster_kit.platforms.engine import Event
from cluster_kit.show.progress_line import progress_of, waited_for
from cluster_kit.show.task_table import TIMES, TO, Group, rows_of, status_table, tasks_in
from cluster_kit.show.view import LiveView
from tests.entries import as_entry
from tests.make import cluster
from tests.unit.show.consoles import console, shown
from tests.unit.stories import WITHOUT_CHIEF, Story


def workers(count: int) -> list[TaskView]:
    return [TaskView(f"worker-{index}", "worker", "10.0.0.9", (), State.TRAINING, step=index,
                     steps_per_s=30.0 + index) for index in range(count)]  # fmt: skip


CHIEF = TaskView("chief-0", "chief", "10.0.0.2", (), State.TRAINING)


def names(rows: list[TaskView | Group]) -> list[str]:
    return [row.name for row in rows]


def test_tasks_that_fit_have_one_row_each() -> None:
    tasks = [CHIEF, *workers(3)]
    assert rows_of(tasks, 4, "chief-0") == tasks


def test_with_more_tasks_all_share_a_row_except_the_leader_and_those_in_trouble() -> None:
    tasks = [CHIEF, *workers(40), TaskView("ps-0", "ps", "10.0.0.3", (), State.READY)]
    tasks[3] = replace(tasks[3], state=State.RESTARTING)
    tasks[5] = replace(tasks[5], state=State.ENDED, exit_code=137)
    tasks[7] = replace(tasks[7], state=State.ENDED, exit_code=0)
    rows = rows_of(tasks, 20, "chief-0")
    assert names(rows) == ["chief-0", "worker-2", "worker-4", f"worker {TIMES}38", "ps-0"]
    assert tasks_in(rows) == len(tasks)
    group = rows[3]
    assert isinstance(group, Group)
    assert group.states == "37 training, 1 ended"
    assert group.speeds == (30.0, 69.0) and group.step == 39


def test_a_group_shows_the_resource_use_of_all_its_tasks() -> None:
    using = [replace(task, usage=Usage(5.0, cpus=0.5, rx_bps=1, tx_bps=2), restarts=1, gpus=("0",))
             for task in workers(4)]  # fmt: skip
    group = Group("worker", tuple(using))
    assert group.usage == Usage(20.0, cpus=2.0, rx_bps=4, tx_bps=8)
    assert (group.restarts, group.gpus) == (4, 4)
    assert Group("worker", tuple(workers(2))).usage is None
    on = console(width=140)
    on.print(status_table([group], width=140))
    row = shown(on).splitlines()[-1].split()
    assert row[:4] == ["worker", f"{TIMES}4", "4", "4"] and f"30.0{TO}33.0" in row and "2.00" in row


def training(*entries: Entry) -> RunState:
    seen = RunState.of(cluster()).with_event(Event(0.0, "start", "chief-0", None))
    for entry in (as_entry("chief-0", 0.1, "start", {}), *entries):
        seen = seen.with_entry(entry)
    return seen


def step(time: float, number: int, rate: float = 50.0) -> Entry:
    return as_entry("chief-0", time, "step", {"step": number, "steps_per_s": rate})


def test_progress_is_the_step_the_rate_and_the_remaining_time() -> None:
    of = as_entry("chief-0", 1.0, "training", {"steps": 1000, "images_per_step": 64})
    epoch = as_entry("chief-0", 3.0, "epoch", {"epoch": 2, "step": 200})
    found = progress_of(training(of, step(2, 100, 10), step(3, 150), epoch, step(4, 250)))
    assert found is not None and found.share == 0.25
    assert found.words == "step 250 of 1,000, 15 s left, 50 steps/s, 3,200 images/s, 2 epochs done"


def test_unknown_figures_are_not_shown() -> None:
    found = progress_of(training(step(2, 7, 0.0)))
    assert found is not None and (found.share, found.left_s) == (None, None)
    assert found.words == "step 7"
    odd = as_entry("chief-0", 1.0, "training", {"steps": "many"})
    assert (progress_of(training(odd, step(2, 7))) or found).words == "step 7, 50 steps/s"
    assert progress_of(training()) is None
    ended = training(step(2, 7)).with_event(Event(3.0, "die", "chief-0", 0))
    assert progress_of(ended) is None


def test_a_job_that_stands_has_neither_speed_nor_remaining_time() -> None:
    of = as_entry("chief-0", 1.0, "training", {"steps": 1000})
    found = progress_of(training(of, *(step(1 + n, n) for n in (1, 2, 3)), step(9, 3, 0.0)))
    assert found is not None and found.words == "step 3 of 1,000, no steps now"


def test_a_restarted_program_has_the_rate_since_its_start() -> None:
    again = as_entry("chief-0", 5.0, "start", {"attempt": 2})
    found = progress_of(training(step(2, 100, 90.0), again, step(6, 50, 10.0)))
    assert found is not None and found.steps_per_s == 10


def test_the_first_reports_of_a_program_give_no_remaining_time() -> None:
    """The graphs are made before the first one: 30 s would be shown as 17 min."""
    of = as_entry("chief-0", 1.0, "training", {"steps": 1000})
    rates = (1.0, 8.0, 33.0, 33.0, 32.0, 33.0)
    seen = training(of)
    told = []
    for at, rate in enumerate(rates, 1):
        seen = seen.with_entry(step(1.0 + at, 10 * at, rate))
        found = progress_of(seen)
        assert found is not None and (found.left_s is not None) == (" left" in found.words)
        told.append(found.left_s)
    assert told[:5] == [None] * 5
    assert told[5] == pytest.approx(940 / 33)


@pytest.mark.parametrize(
    ("seconds", "message"), [(30, "30 s"), (100, "1 min 40 s"), (7300, "2 h 1 min")]
)
def test_the_remaining_time_is_shown_in_sensible_units(seconds: int, message: str) -> None:
    of = as_entry("chief-0", 1.0, "training", {"steps": 3 + seconds})
    found = progress_of(training(of, *(step(1 + n, n, 1.0) for n in (1, 2, 3))))
    assert found is not None and f", {message} left, " in found.words


def test_a_job_that_has_not_started_shows_which_tasks_it_waits_for() -> None:
    seen = training()
    assert waited_for(seen) == (
        "waits for worker-0 (created), worker-1 (created), ps-0 (created) and 1 more"
    )
    for name in ("worker-0", "worker-1", "ps-0"):
        seen = seen.with_event(Event(1.0, "start", name, None))
        seen = seen.with_entry(as_entry(name, 2.0, "ready", {}))
    assert waited_for(seen) == "waits for ps-1 (created)"
    seen = seen.with_event(Event(1.0, "start", "ps-1", None))
    ready = seen.with_entry(as_entry("chief-0", 3.0, "ready", {}))
    assert waited_for(ready) == "all servers answer, no step reported yet"
    assert waited_for(ready.with_entry(step(4, 1))) == ""


def test_a_leader_without_servers_says_nothing_about_the_other_tasks() -> None:
    story = Story.of(WITHOUT_CHIEF).says(1.0, "worker-0", "ready")
    assert waited_for(story.seen) == "no step reported yet"
    assert waited_for(story.dies(2.0, "worker-1", 1).seen) == "waits for worker-1 (restarting)"


def test_the_live_view_shows_a_bar_and_fits() -> None:
    of = as_entry("chief-0", 1.0, "training", {"steps": 1000})
    on = console(80, 24, terminal=True)
    view = LiveView(on)
    view.update(training(of, step(2, 250)))
    view.close()
    output = shown(on)
    assert "step 250 of 1,000" in output and "━" in output
    low = console(80, 6, terminal=True)
    view = LiveView(low)
    view.update(training(of, step(2, 250)))
    view.close()
    assert "step 250 of" not in shown(low)


def functions(time: float, done: object, of: object) -> Entry:
    return as_entry("chief-0", time, "functions", {"done": done, "of": of})


def test_functions_that_a_coordinator_waits_for_are_counted() -> None:
    ready = as_entry("chief-0", 0.5, "ready", {})
    message = "chief-0 waits for functions: 1,031 of 1,040 done"
    assert waited_for(training(ready, functions(2, 1031, 1040))) == message
    assert (
        waited_for(training(step(2, 7), functions(3, 5, 40), functions(4, 1031, 1040))) == message
    )


@pytest.mark.parametrize(
    "over",
    [
        step(3, 8),
        functions(3, 40, 40),
        as_entry("chief-0", 3.0, "start", {}),
        functions(3, "x", None),
    ],
    ids=["a step", "all done", "another attempt", "what a program of the user's wrote"],
)
def test_functions_that_are_finished_or_of_earlier_attempts_are_not_waited_for(over: Entry) -> None:
    assert "functions" not in waited_for(training(step(1, 7), functions(2, 31, 40), over))
