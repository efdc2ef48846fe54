"""Plain lines for CI logs: each change once, each line of a task with a maximum length."""

from __future__ import annotations

from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Event
from cluster_kit.show.task_table import remarks
from cluster_kit.show.view import LONGEST, PlainView
from tests.entries import as_entry
from tests.make import cluster
from tests.unit.show.consoles import console, shown
from tests.unit.show.samples import KERAS_BAR, NATIVE_NOISE


def test_each_change_is_one_line() -> None:
    on, seen = console(), RunState.of(cluster())
    view = PlainView(on)
    view.phase("starting 5 containers")
    view.update(seen)
    seen = seen.with_event(Event(1.0, "start", "ps-0", None))
    view.update(seen)
    view.update(seen.with_entry(as_entry("chief-0", 1.0, "metrics", {})))
    seen = seen.with_event(Event(2.0, "die", "ps-0", 137))
    view.update(seen)
    seen = seen.with_event(Event(3.0, "start", "ps-0", None))
    view.update(seen)
    lines = shown(on).splitlines()
    assert lines[0] == "starting 5 containers"
    assert [line.split()[:2] for line in lines[1:]] == [
        ["ps-0", "running"],
        ["ps-0", "restarting"],
        ["ps-0", "running,"],
    ]
    assert "restart 1" in lines[-1]


def test_an_evaluator_that_scores_and_waits_in_turn_is_one_line() -> None:
    on = console()
    seen = RunState.of(cluster(evaluator=1)).with_event(Event(1.0, "start", "evaluator-0", None))
    view = PlainView(on)
    for time, pending in enumerate((0, 1, 0, 2, 0), start=2):
        seen = seen.with_entry(as_entry("evaluator-0", time, "scoring", {"pending": pending}))
        view.update(seen)
    assert [line.split()[1] for line in shown(on).splitlines()] == ["waiting", "scoring"]


def test_a_program_that_has_failed_is_not_called_running_before_it_ends() -> None:
    on = console()
    seen = RunState.of(cluster()).with_event(Event(1.0, "start", "chief-0", None))
    view = PlainView(on)
    view.update(seen)
    for event, about in (("step", {"step": 1}), ("failure", {"exit_code": 1})):
        seen = seen.with_entry(as_entry("chief-0", 2.0, event, about))
        view.update(seen)
    view.update(seen.with_event(Event(3.0, "die", "chief-0", 1)))
    states = [line.split()[1:3] for line in shown(on).splitlines()]
    assert [state for state, _ in states] == ["running", "training", "ended"]


def test_a_task_that_ran_out_of_memory_is_named_so() -> None:
    on, seen = console(), RunState.of(cluster())
    view = PlainView(on)
    for time, action, code in ((1.0, "start", None), (2.0, "oom", None), (2.0, "die", 137)):
        seen = seen.with_event(Event(time, action, "ps-0", code))
    view.update(seen)
    seen = seen.with_event(Event(3.0, "start", "ps-0", None))
    assert remarks(seen.tasks.values()) == [
        "ps-0 ran out of memory: raise its `memory` limit, if any"
    ]
    view.update(seen.with_event(Event(4.0, "die", "ps-0", 1)))
    first, second = shown(on).splitlines()
    assert "restarting (137: out of memory)" in first
    assert "restarting (1), restart 1" in second


def test_log_lines_are_shown_unchanged() -> None:
    on = console()
    PlainView(on).log("chief-0", "loss [bold]0.5[/bold] :smile:")
    assert shown(on) == "     chief-0 | loss [bold]0.5[/bold] :smile:\n"


def test_a_tasks_name_appears_once_before_its_supervisors_message() -> None:
    on = console()
    PlainView(on).log("chief-0", "chief-0: stopped by SIGTERM")
    PlainView(on).log("chief-0", "worker-1: was lost")
    assert shown(on) == "     chief-0 | stopped by SIGTERM\n     chief-0 | worker-1: was lost\n"


def test_a_progress_bar_becomes_its_last_state_and_noise_is_dropped() -> None:
    on = console()
    for line in (*NATIVE_NOISE, KERAS_BAR):
        PlainView(on).log("chief-0", line)
    (line,) = shown(on).splitlines()
    assert "60/60" in line and "1/60" not in line.replace("60/60", "")


def test_a_long_line_is_truncated_but_may_be_wider_than_the_terminal() -> None:
    on = console(80)
    PlainView(on).log("chief-0", "x" * 5000)
    (line,) = shown(on).splitlines()
    assert line == f"     chief-0 | {'x' * (LONGEST - 1)}…"
