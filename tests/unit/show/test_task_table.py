"""The table of tasks: the contents of a row, and which columns there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import State, Straggler, TaskView
from cluster_kit.observe.usage import Usage
from cluster_kit.platforms.engine import Event
from cluster_kit.show.task_table import remarks, status_table
from tests.entries import as_entry
from tests.make import cluster
from tests.unit.show.consoles import console, shown


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


def test_the_resource_use_of_a_task_is_shown_if_there_is_room() -> None:
    using = Usage(76_000_000, cpus=0.834, rx_bps=1_000_000, tx_bps=234_000, gpu_busy=0.97)
    task = TaskView("worker-0", "worker", "172.28.0.100", ("nvidia.com/gpu=0",), usage=using)
    idle = TaskView("ps-0", "ps", "172.28.0.20", ())
    new = TaskView("ps-1", "ps", "172.28.0.21", (), usage=Usage(9_000))

    def lines(width: int) -> list[list[str]]:
        on = console(width=width)
        on.print(status_table([task, idle, new], width=width))
        return [line.split() for line in shown(on).splitlines()]

    heading, *rows = lines(120)
    assert heading[-3:] == ["cpu", "mem", "net"]
    assert rows[0][-5:] == ["0.83", "76.0", "MB", "1.2", "MB/s"]
    assert rows[0][2:4] == ["0", "(97%)"]
    assert rows[1][-3:] == ["-", "-", "-"]
    assert rows[2][-4:] == ["-", "9.0", "kB", "-"]
    assert "cpu" not in lines(80)[0]


def test_a_coordinators_workers_show_their_own_steps_and_their_share() -> None:
    seen = RunState.of(cluster(chief=1, worker=2))
    for task in ("chief-0", "worker-0", "worker-1"):
        seen = seen.with_event(Event(1.0, "start", task, None))
    for index, count in enumerate((30, 10)):
        of_worker = {"own_steps": count, "steps_per_s": count / 4}
        seen = seen.with_entry(as_entry(f"worker-{index}", 2.0, "step", of_worker))

    def lines(width: int) -> list[list[str]]:
        on = console(width=width)
        on.print(status_table(seen.tasks.values(), width=width))
        return [line.split() for line in shown(on).splitlines()]

    heading, chief, *workers = lines(120)
    assert heading[heading.index("steps/s") + 1] == "share" and "share" not in lines(80)[0]
    rows = {row[0]: row[3:8] for row in workers}
    assert rows["worker-0"] == ["training", "-", "30", "7.5", "75%"]
    assert rows["worker-1"] == ["training", "-", "10", "2.5", "25%"]
    assert "75%" not in chief


def evaluator(**fields: object) -> list[str]:
    """Returns the heading and the last row after the evaluator has written this about a
    checkpoint."""
    seen = RunState.of(cluster(evaluator=1))
    seen = seen.with_event(Event(1.0, "start", "evaluator-0", None))
    seen = seen.with_entry(as_entry("chief-0", 2.0, "step", {"step": 900, "checkpoint": "none"}))
    seen = seen.with_entry(
        as_entry("evaluator-0", 3.0, "evaluation", {"step": 1, "checkpoint": "x"})
    )
    seen = seen.with_entry(as_entry("evaluator-0", 4.0, "evaluation", fields))
    on = console()
    on.print(status_table(seen.tasks.values()))
    lines = shown(on).splitlines()
    assert "900" in lines[1]
    return [lines[0].split()[-1], *lines[-1].split()[3:]]


def test_the_evaluators_row_has_the_newest_checkpoint_and_its_score() -> None:
    scored = evaluator(checkpoint="ckpt-6", step=360, loss=0.5, accuracy=0.9888)
    assert scored == ["accuracy", "scoring", "-", "ckpt-6", "-", "0.5000", "0.9888"]
    detection = evaluator(checkpoint="ckpt-600", step=600, loss=2.0, map=0.4, map_50=0.7401)
    assert detection == ["mAP@0.5", "scoring", "-", "ckpt-600", "-", "2.0000", "0.7401"]


def test_a_loss_that_is_not_a_number_is_shown_and_not_the_one_before() -> None:
    assert evaluator(checkpoint="x", loss=float("nan"))[5] == "nan"


def test_both_scores_get_a_column_each() -> None:
    assert evaluator(checkpoint="[b]", accuracy=0.5, map_50=0.25)[-2:] == ["0.5000", "0.2500"]


@pytest.mark.parametrize("odd", [7, None, ["ckpt-1"], "x" * 41])
def test_an_invalid_checkpoint_of_a_users_program_is_left_out(odd: object) -> None:
    assert evaluator(checkpoint=odd, map_50=0.25)[3] == "x"


def test_an_ended_task_shows_its_exit_code() -> None:
    assert "ended (137)" in row(state=State.ENDED, exit_code=137)


@pytest.mark.parametrize("figure", [1.0, float("nan"), float("inf"), 10**29])
def test_an_invalid_step_of_a_users_program_is_shown_nevertheless(figure: float) -> None:
    assert row(step=figure).startswith("worker-0")


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_name(state: State) -> None:
    assert row(state=state).split()[3] == state


def test_a_restarting_task_shows_its_exit_code_only_by_its_colour() -> None:
    assert row(state=State.RESTARTING, exit_code=137).split()[3:5] == ["restarting", "-"]


@pytest.mark.parametrize("state", State)
def test_a_task_that_cannot_make_steps_has_no_speed(state: State) -> None:
    stands = state in (State.PAUSED, State.RESTARTING)
    assert ("12.3" in row(state=state, steps_per_s=12.34)) == (not stands)


@pytest.mark.parametrize(("code", "shown"), [(0, True), (143, False), (137, False)])
def test_a_task_that_ended_well_keeps_its_last_speed(code: int, shown: bool) -> None:
    drawn = row(state=State.ENDED, exit_code=code, steps_per_s=12.34)
    assert ("12.3" in drawn) is shown


def test_a_straggler_is_shown_while_it_works() -> None:
    straggler = Straggler(1.0, "chief-0", 3.0, 12.0, 0.2, None, "unknown", None, "it is slow")
    assert row(state=State.TRAINING, straggler=straggler).split()[3] == "straggler"
    assert row(state=State.ENDED, exit_code=0, straggler=straggler).split()[3] == "ended"
    slow = TaskView("worker-1", "worker", "", (), State.READY, straggler=straggler)
    assert remarks([slow, replace(slow, state=State.PAUSED), replace(slow, straggler=None)]) == [
        "it is slow"
    ]


def test_a_row_fits_into_80_columns() -> None:
    on = console(80)
    figures = {"step": 123456, "steps_per_s": 123.4, "loss": 0.1234, "accuracy": 0.9876}
    task = TaskView("evaluator-0", "", "10.207.192.100", (), State.TRAINING, **figures)  # type: ignore[arg-type]
    on.print(status_table([task]))
    heading, line = shown(on).splitlines()
    assert len(heading) <= 80 and len(line) <= 80
    assert line.split()[-4:] == ["123456", "123.4", "0.1234", "0.9876"]
