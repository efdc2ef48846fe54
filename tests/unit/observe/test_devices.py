"""The GPUs that a task sees, compared with what the engine was asked for: in the live table and in
`status`."""

from __future__ import annotations

from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import by_task
from cluster_kit.show.task_table import remarks, status_table
from tests.entries import as_entry
from tests.make import cluster, gpus, host
from tests.unit.show.consoles import console, shown

MADE = cluster(host(gpus=gpus(2)), gpus="auto", worker=2)
OTHER = "worker-1 was promised GPU 1, sees NVIDIA H200 (pci 0000:3b:00.0)"


def asked(task: str, broken: str = "", by: str = "chief-0") -> Entry:
    seen = ["NVIDIA H200 (pci 0000:3b:00.0)"]
    return as_entry(
        by, 10.0, "devices", {"of": task, "promised": [], "sees": seen, "broken": broken}
    )


def test_devices_are_those_of_the_server_whichever_task_asked() -> None:
    state = RunState.of(MADE).with_entry(asked("worker-0")).with_entry(asked("worker-1", OTHER))
    first, second = state.tasks["worker-0"], state.tasks["worker-1"]
    assert (first.gpus_seen, first.gpu_problem) == (("NVIDIA H200 (pci 0000:3b:00.0)",), "")
    assert (second.gpus, second.gpu_problem) == (("1",), OTHER)
    assert state.tasks["chief-0"].gpus_seen is None
    assert state.devices("worker-1") == ["NVIDIA H200 (pci 0000:3b:00.0)"]
    assert state.devices("chief-0") is None


def test_a_later_answer_replaces_an_earlier_one() -> None:
    state = RunState.of(MADE).with_entry(asked("worker-1", OTHER))
    state = state.with_entry(asked("worker-1", by="worker-1"))
    assert state.tasks["worker-1"].gpu_problem == ""


def test_the_table_shows_both_if_they_differ() -> None:
    state = RunState.of(MADE).with_entry(asked("worker-0")).with_entry(asked("worker-1", OTHER))
    tasks = list(state.tasks.values())
    on = console()
    on.print(status_table(tasks))
    [first] = [line for line in shown(on).splitlines() if line.startswith("worker-0")]
    [second] = [line for line in shown(on).splitlines() if line.startswith("worker-1")]
    assert "sees" not in first
    assert "1 (sees 1)" in second
    assert remarks(tasks) == [OTHER]


def test_status_reads_the_same_from_the_files() -> None:
    found = by_task([asked("worker-1"), asked("worker-1", OTHER), asked("worker-0")])
    live = RunState.of(MADE).with_entry(asked("worker-1", OTHER)).tasks["worker-1"]
    assert found["worker-1"] == {"gpus_seen": live.gpus_seen, "gpu_problem": OTHER}
    assert found["worker-0"]["gpu_problem"] == ""


def test_a_users_event_of_that_name_breaks_nothing() -> None:
    state = RunState.of(MADE).with_entry(as_entry("worker-0", 1.0, "devices", {"sees": 7, "of": 3}))
    assert state.tasks == RunState.of(MADE).tasks
