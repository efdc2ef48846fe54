"""Reports which task holds which variable."""

from __future__ import annotations

import json
from types import SimpleNamespace

from trainer.agent.injected import placement as injected
from trainer.agent.progress_file import Progress
from trainer.programs.training import placement

FLOAT = SimpleNamespace(size=4)


def variable(name: str, device: str, elements: int | None = 10, **more):
    shape = SimpleNamespace(num_elements=lambda: elements)
    return SimpleNamespace(name=name, device=device, dtype=FLOAT, shape=shape, **more)


def test_a_variable_is_reported_with_its_task_and_size():
    found = placement.placement([
        variable("bias:0", "/job:ps/replica:0/task:1/device:CPU:0", 2),
        variable("kernel:0", "/job:ps/task:0", 100),
        variable("here:0", ""),
        variable("local:0", "/device:CPU:0"),
    ])  # fmt: skip
    assert found == [
        {"name": "kernel", "on": "ps-0", "bytes": 400, "order": 1},
        {"name": "bias", "on": "ps-1", "bytes": 8, "order": 0},
    ]


def test_parts_of_a_divided_variable_are_counted_separately():
    parts = [variable(f"table/part_{at}:0", f"/job:ps/task:{at}", 5) for at in (0, 1)]
    found = placement.placement([SimpleNamespace(variables=parts)])
    assert [(one["name"], one["on"], one["bytes"]) for one in found] == [
        ("table/part_0", "ps-0", 20), ("table/part_1", "ps-1", 20),
    ]  # fmt: skip


def test_of_very_many_variables_the_small_ones_are_summed_up(monkeypatch):
    monkeypatch.setattr(injected, "MOST", 2)
    many = [variable(f"v{at}:0", f"/job:ps/task:{at % 2}", at + 1) for at in range(6)]
    assert placement.placement(many) == [
        {"name": "v5", "on": "ps-1", "bytes": 24, "order": 5},
        {"name": "v4", "on": "ps-0", "bytes": 20, "order": 4},
        {"name": "others", "on": "ps-0", "bytes": 16},
        {"name": "others", "on": "ps-1", "bytes": 24},
    ]


def test_an_event_is_written_if_there_is_something_to_report(tmp_path):
    file = tmp_path / "chief-0.jsonl"
    placement.tell(Progress(file), [variable("a:0", "")])
    placement.tell(None, [variable("a:0", "/job:ps/task:0")])
    assert file.read_text() == ""
    placement.tell(Progress(file), [variable("a:0", "/job:ps/task:0", None)])
    event = json.loads(file.read_text())
    assert event["event"] == "placement"
    assert event["variables"] == [{"name": "a", "on": "ps-0", "bytes": 0, "order": 0}]
