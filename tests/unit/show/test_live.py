"""What a person sees: one line for each change, and a table of figures."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cluster_kit.engine.containers import Event
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State, TaskView
from cluster_kit.show.live import LiveView, PlainView, make_view, status_table
from tests.make import cluster


def console(terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=120, force_terminal=terminal)


def shown(on: Console) -> str:
    assert isinstance(on.file, io.StringIO)
    return on.file.getvalue()


def row(**different: object) -> str:
    task = TaskView("worker-0", "worker", "172.28.0.100", ("0", "1"), **different)  # type: ignore[arg-type]
    on = console()
    on.print(status_table([task], title="demo"))
    return shown(on).splitlines()[-1]


def test_a_table_row_holds_ip_gpus_state_and_figures() -> None:
    line = row(
        state=State.TRAINING, restarts=2, step=40, steps_per_s=12.34, loss=0.5, accuracy=0.975
    )
    assert line.split() == [
        "worker-0", "172.28.0.100", "0,1", "training", "2", "40", "12.3", "0.5000", "0.9750",
    ]  # fmt: skip


def evaluator(**fields: object) -> list[str]:
    """Heading and last row once the evaluator has written this of a checkpoint."""
    seen = RunState.of(cluster(evaluator=1))
    seen = seen.with_event(Event(1.0, "start", "evaluator-0", None))
    seen = seen.with_entry(Entry("chief-0", 2.0, "step", {"step": 900, "checkpoint": "none"}))
    seen = seen.with_entry(Entry("evaluator-0", 3.0, "evaluation", {"step": 1, "checkpoint": "x"}))
    seen = seen.with_entry(Entry("evaluator-0", 4.0, "evaluation", fields))
    on = console()
    on.print(status_table(seen.tasks.values()))
    lines = shown(on).splitlines()
    assert "900" in lines[1]
    return [lines[0].split()[-1], *lines[-1].split()[3:]]


def test_the_evaluators_row_holds_the_newest_checkpoint_and_its_score() -> None:
    scored = evaluator(checkpoint="ckpt-6", step=360, loss=0.5, accuracy=0.9888)
    assert scored == ["accuracy", "scoring", "-", "ckpt-6", "-", "0.5000", "0.9888"]
    detection = evaluator(checkpoint="ckpt-600", step=600, loss=2.0, map=0.4, map_50=0.7401)
    assert detection == ["mAP@0.5", "scoring", "-", "ckpt-600", "-", "2.0000", "0.7401"]


def test_who_has_both_scores_gets_both_columns() -> None:
    assert evaluator(checkpoint="[b]", accuracy=0.5, map_50=0.25)[-2:] == ["0.5000", "0.2500"]


@pytest.mark.parametrize("odd", [7, None, ["ckpt-1"], "x" * 41])
def test_a_users_odd_checkpoint_is_left_out(odd: object) -> None:
    assert evaluator(checkpoint=odd, map_50=0.25)[3] == "x"


def test_an_ended_task_shows_its_exit_code() -> None:
    assert "ended (137)" in row(state=State.ENDED, exit_code=137)


@pytest.mark.parametrize("figure", [1.0, float("nan"), float("inf"), 10**29])
def test_a_users_odd_step_is_shown_all_the_same(figure: float) -> None:
    assert row(step=figure).startswith("worker-0")


def test_plain_lines_say_each_change_once() -> None:
    on, seen = console(), RunState.of(cluster())
    view = PlainView(on)
    view.phase("starting 5 containers")
    view.update(seen)
    seen = seen.with_event(Event(1.0, "start", "ps-0", None))
    view.update(seen)
    view.update(seen.with_entry(Entry("chief-0", 1.0, "metrics", {})))
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


def test_log_lines_are_shown_as_they_are() -> None:
    on = console()
    PlainView(on).log("chief-0", "loss [bold]0.5[/bold] :smile:")
    assert shown(on) == "     chief-0 | loss [bold]0.5[/bold] :smile:\n"


def test_a_terminal_gets_a_live_table_and_a_pipe_plain_lines() -> None:
    assert isinstance(make_view(console()), PlainView)
    assert isinstance(make_view(console(terminal=True)), LiveView)


def test_the_live_table_stops_at_a_screenful_and_says_so() -> None:
    on = console(terminal=True)
    view = LiveView(on)
    view.phase("running")
    view.update(RunState.of(cluster(worker=60)))
    view.log("chief-0", "[red]hello")
    view.close()
    view.close()
    assert "and 39 more tasks" in shown(on)
    assert "[red]hello" in shown(on)
