"""An engine on another machine is tested before anything starts there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import EngineError, HostError
from cluster_kit.facts import EngineKind
from cluster_kit.run.start import refuse_if_not_shared
from cluster_kit.util.process import Completed
from tests.fakes.hosts import Machine

FAR = EngineKind(remote="tcp://10.0.0.7")
ABSENT = 'invalid mount config for type "bind": bind source path does not exist: /x'


@pytest.fixture
def asked(machine: Machine) -> dict[str, Any]:
    """The answer of `docker create`, and the commands that were run."""
    says: dict[str, Any] = {"errors": "", "commands": []}

    def run(command: list[str]) -> Completed:
        says["commands"].append(command[1:3])
        return Completed(tuple(command), int(bool(says["errors"])), "c0ffee\n", says["errors"])

    machine.starts(run=run)
    return says


def test_an_engine_of_this_machine_is_not_tested(
    asked: dict[str, Any], tmp_path: Path, machine: Machine
) -> None:
    refuse_if_not_shared(machine.host, EngineKind(rootless=True), "image", tmp_path / "runs")
    assert asked["commands"] == [] and not list(tmp_path.iterdir())


def test_an_engine_that_sees_the_folder_is_accepted(
    asked: dict[str, Any], tmp_path: Path, machine: Machine
) -> None:
    refuse_if_not_shared(machine.host, FAR, "image", tmp_path / "runs")
    assert asked["commands"] == [["create", "--pull=never"], ["rm", "--force"]]
    assert not list((tmp_path / "runs").iterdir()), "nothing is left"


def test_an_engine_that_does_not_see_the_folder_is_reported_with_the_folder(
    asked: dict[str, Any], tmp_path: Path, machine: Machine
) -> None:
    asked["errors"] = ABSENT
    with pytest.raises(HostError, match=r"on another machine \(tcp:") as told:
        refuse_if_not_shared(machine.host, FAR, "image", tmp_path / "runs")
    assert str(tmp_path / "runs") in told.value.message and "DOCKER_HOST" in told.value.hint


def test_a_container_learns_its_path_outside(tmp_path: Path, machine: Machine) -> None:
    def run(command: list[str]) -> Completed:
        if command[2] != "inspect":
            return Completed(tuple(command), 1, "", ABSENT)
        mounts = [
            {"Source": "/home/me/mine", "Destination": str(tmp_path)},
            {"Source": "/x", "Destination": "/"},
        ]
        return Completed(
            tuple(command), 0, "".join(f"{json.dumps(m)}\n" for m in mounts) + "\n", ""
        )

    machine.starts(run=run)
    with pytest.raises(HostError, match="this is a container") as told:
        refuse_if_not_shared(machine.host, EngineKind(outside=True), "image", tmp_path / "runs")
    assert f"same path as outside: /home/me/mine, not {tmp_path}" in told.value.hint


def test_a_container_that_cannot_be_inspected_is_refused_all_the_same(
    tmp_path: Path, machine: Machine
) -> None:
    machine.starts(run=lambda command: Completed(tuple(command), 1, "", ABSENT))
    with pytest.raises(HostError, match="this is a container") as told:
        refuse_if_not_shared(machine.host, EngineKind(outside=True), "image", tmp_path / "runs")
    assert "under the same path as outside;" in told.value.hint


def test_any_other_refusal_has_the_engines_message(
    asked: dict[str, Any], tmp_path: Path, machine: Machine
) -> None:
    asked["errors"] = "no such image"
    with pytest.raises(EngineError, match="no such image"):
        refuse_if_not_shared(machine.host, FAR, "image", tmp_path)
