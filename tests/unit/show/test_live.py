"""The live view fits its terminal, and no line of a container is wider than that."""

from __future__ import annotations

import re
import time

import pytest
from rich.cells import cell_len

from cluster_kit.observe.state import RunState
from cluster_kit.platforms.engine import Event
from cluster_kit.show.task_table import TIMES
from cluster_kit.show.view import LiveView, PlainView, make_view
from tests.entries import as_entry
from tests.make import cluster
from tests.unit.show.consoles import console, shown
from tests.unit.show.samples import KERAS_BAR, NATIVE_NOISE, TF_KERAS_BAR

CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def lines(text: str) -> list[str]:
    """Returns what was written, line by line, without colours and cursor movements."""
    return [line for line in re.split(r"[\r\n]+", CONTROL.sub("", text)) if line.strip()]


def test_a_terminal_gets_a_live_table_and_a_pipe_plain_lines() -> None:
    assert isinstance(make_view(console()), PlainView)
    assert isinstance(make_view(console(terminal=True)), LiveView)


@pytest.mark.parametrize(("height", "hidden"), [(100, 0), (24, 0), (6, 62), (3, 62)])
def test_the_live_table_stops_at_a_screenful_and_says_so(height: int, hidden: int) -> None:
    on = console(height=height, terminal=True)
    view = LiveView(on)
    view.phase("running")
    view.update(RunState.of(cluster(worker=60)))
    view.log("chief-0", "[red]hello")
    view.close()
    view.close()
    assert "[red]hello" in shown(on)
    if height > 3:
        assert (f"and {hidden} more tasks" if hidden else f"worker {TIMES}60") in shown(on)


def test_what_has_happened_is_not_the_runs_step() -> None:
    on = console(80, 24, terminal=True)
    view = LiveView(on)
    view.phase("running")
    view.note("worker-1 was restarted")
    view.close()
    lines = CONTROL.sub("", shown(on)).splitlines()
    assert lines[0] == "worker-1 was restarted" and "running" in lines[1]


def test_the_time_is_the_runs_own_also_after_attach() -> None:
    on = console(80, 24, terminal=True)
    view = LiveView(on)
    view.count_from(time.monotonic() - 7265)
    view.phase("running")
    view.close()
    assert "running  2 h 1 min" in CONTROL.sub("", shown(on))


def test_a_straggler_is_named_below_the_table() -> None:
    on = console(80, 24, terminal=True)
    view = LiveView(on)
    seen = RunState.of(cluster(worker=2)).with_event(Event(1.0, "start", "worker-1", None))
    fields = {"of": "worker-1", "message": "worker-1 is a straggler: " + "so slow " * 20}
    view.update(seen.with_entry(as_entry("chief-0", 2.0, "straggling", fields)))
    view.close()
    written = lines(shown(on))
    assert any(re.search(r"worker-1 .* straggler ", line) for line in written)
    [named] = {line for line in written if line.startswith("worker-1 is a straggler: ")}
    assert named.endswith("…") and cell_len(named) <= 80


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    on = console(width, 24, terminal=True)
    view = LiveView(on)
    view.phase("building the shared image cluster-kit/trainer:cpu-0123456789ab-and-more " * 3)
    view.update(RunState.of(cluster(worker=3, evaluator=1)))
    for line in (KERAS_BAR, TF_KERAS_BAR, "x" * 3000, "\t".join("abc"), "Größe 界" * 50):
        view.log("chief-0", line)
    view.close()
    written = lines(shown(on))
    assert max(map(cell_len, written)) <= width
    heard = [line for line in written if line.startswith("     chief-0 ")]
    assert len(heard) == 5, "one line each: nothing wraps"
    assert "…" in heard[2] and heard[3].endswith("a       b       c")


def test_noise_is_left_out() -> None:
    on = console(terminal=True)
    view = LiveView(on)
    for line in NATIVE_NOISE:
        view.log("chief-0", line)
    view.close()
    assert shown(on) == ""


def heading(view: LiveView, width: int) -> list[str]:
    on = console(width, 24)
    on.print(view.shown())
    return next(line for line in shown(on).splitlines() if line.startswith("task ")).split()


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (80, ["task", "ip", "gpu", "state", "restarts", "step", "steps/s", "loss", "accuracy"]),
        (70, ["task", "gpu", "state", "restarts", "step", "steps/s", "loss", "accuracy"]),
        (60, ["task", "state", "restarts", "step", "steps/s", "accuracy"]),
        (40, ["task", "state", "step", "steps/s"]),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_none_is_truncated(
    width: int, columns: list[str]
) -> None:
    on = console(width, 24, terminal=True)
    view = LiveView(on)
    seen = RunState.of(cluster(worker=40, ps=2, evaluator=1))
    for task in list(seen.tasks):
        seen = seen.with_event(Event(1.0, "start", task, None))
        seen = seen.with_entry(as_entry(task, 2.0, "step", {"step": 123, "steps_per_s": 31.5}))
    view.update(seen)
    view.close()
    assert heading(view, width) == columns
    table = console(width, 24)
    table.print(view.shown())
    rows = [line for line in shown(table).splitlines() if line.startswith(("chief", "worker"))]
    assert rows and all("…" not in row for row in rows)


def test_lines_that_wrapped_in_a_narrowed_terminal_are_cleared() -> None:
    on = console(100, 24, terminal=True)
    view = LiveView(on)
    view.update(RunState.of(cluster()))
    for width, cleared in ((100, 0), (120, 0), (70, 1), (70, 1), (90, 1), (60, 2)):
        on.width = width
        view.update(RunState.of(cluster()))
        assert shown(on).count("\x1b[2J\x1b[H") == cleared, width
    view.close()
