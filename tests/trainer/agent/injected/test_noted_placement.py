"""The hooks report which ps holds which variable of a user's program."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainer.agent.injected import placement


def variable(name: str, on: int, elements: int) -> SimpleNamespace:
    return SimpleNamespace(
        name=f"{name}:0",
        device=f"/job:ps/replica:0/task:{on}/device:CPU:0",
        dtype=SimpleNamespace(size=4),
        shape=SimpleNamespace(num_elements=lambda: elements),
    )


def test_name_task_and_bytes_are_recorded() -> None:
    noted: dict[tuple[str, str], int] = {}
    placement.add(noted, [variable("kernel", 1, 10), variable("bias", 0, 2)])
    assert noted == {("kernel", "ps-1"): 40, ("bias", "ps-0"): 8}


def test_objects_that_are_not_variables_on_a_task_are_ignored() -> None:
    noted: dict[tuple[str, str], int] = {}
    local = SimpleNamespace(name="here:0", device="")
    placement.add(noted, [None, object(), local, variable("kernel", 0, 10)])
    assert list(noted) == [("kernel", "ps-0")]


def test_the_number_of_recorded_variables_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "MOST_KEPT", 3)
    noted: dict[tuple[str, str], int] = {}
    placement.add(noted, [variable(f"v{number}", 0, 1) for number in range(9)])
    assert len(noted) == 3


def test_variables_are_reported_after_the_program_has_created_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chief-0.jsonl"
    file.touch()
    monkeypatch.setenv("CLUSTER_KIT_PROGRESS", str(file))
    monkeypatch.setattr(placement, "LOOK_S", 0.0)
    noted = {("bias", "ps-0"): 8}
    looks = iter(range(20))

    def over() -> bool:
        look = next(looks)
        if look in (1, 2):
            noted["kernel", f"ps-{look}"] = 40
        return look == 12

    placement.say(noted, over)
    [event] = map(json.loads, file.read_text().splitlines())
    assert event.pop("time") and event == {
        "event": "placement",
        "variables": [
            {"name": "kernel", "on": "ps-1", "bytes": 40, "order": 1},
            {"name": "kernel", "on": "ps-2", "bytes": 40, "order": 2},
            {"name": "bias", "on": "ps-0", "bytes": 8, "order": 0},
        ],
    }


def test_without_a_progress_file_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_KIT_PROGRESS", "/no/such/file")
    placement.append([])
