"""`gpus` shows what uses each GPU, including processes that are not the kit's."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cluster_kit.cli import provision as verb
from tests.fakes.hosts import Machine
from tests.make import gpus, host
from tests.unit.command_line import Cli


@pytest.fixture(autouse=True)
def there(root: Any, monkeypatch: pytest.MonkeyPatch, machine: Machine) -> None:
    first, second, third = gpus(3)
    busy = replace(second, users=("process 7 (python3), 3.0 GiB",))
    facts = host(
        gpus=(first, busy, third), gpus_taken=(("0", "mine"),), gpus_reserved=(("2", "jupyter"),)
    )
    machine.connects(lambda: None)
    monkeypatch.setattr(verb, "gather", lambda *_: facts)


def test_the_table_names_clusters_processes_and_containers(cli: Cli) -> None:
    lines = cli("gpus").out.splitlines()
    assert [line.split()[-1] for line in lines[1:4]] == ["mine", "-", "-"]
    assert lines[4:] == [
        "1 is used by process 7 (python3), 3.0 GiB", "2 is used by container jupyter"
    ]  # fmt: skip


def test_json_names_clusters_processes_and_containers(cli: Cli) -> None:
    found = json.loads(cli("gpus", "--json").out)["gpus"]
    assert [gpu["clusters"] for gpu in found] == [["mine"], [], []]
    assert [gpu["used_by"] for gpu in found] == [
        None, "process 7 (python3), 3.0 GiB", "container jupyter",
    ]  # fmt: skip
