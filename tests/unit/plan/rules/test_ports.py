"""Published ports: their forms, and that each belongs to one task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit.resolved import Port
from tests.make import cluster, problems, problems_of

LEAST = 'format = 1\nname = "demo"\n'


@pytest.mark.parametrize(
    ("written", "pair"),
    [("6006", (6006, 6006)), ('"6006"', (6006, 6006)), ('"8080:80"', (8080, 80)),
     ('"127.0.0.1:8080:80"', (8080, 80))],
)  # fmt: skip
def test_forms_of_a_port(written: str, pair: tuple[int, int], tmp_path: Path) -> None:
    text = f"{LEAST}[role.chief]\nports = [{written}]\n"
    assert problems_of(text, tmp_path) == []
    port = eval(written)
    (task,) = cluster(role={"chief": {"ports": [port]}}).of("chief")
    assert task.ports == (Port(*pair),)


@pytest.mark.parametrize(
    "written",
    [
        "0",
        "65536",
        "-1",
        "true",
        "80.0",
        '""',
        '"a"',
        '"1:2:3"',
        '"0.0.0.0:80:80"',
        '"80/udp"',
        '"٣"',
    ],
)
def test_invalid_ports(written: str, tmp_path: Path) -> None:
    (problem,) = problems_of(f"{LEAST}[role.chief]\nports = [{written}]\n", tmp_path)
    assert problem.key_path.startswith("role.chief.ports")
    assert "a port is" in problem.rule


def key_paths(**keys: Any) -> list[str]:
    return [problem.key_path for problem in problems(**keys)]


def test_a_port_of_the_host_belongs_to_one_task() -> None:
    both = {"chief-0": {"ports": [80]}, "ps-0": {"ports": ["80:90"]}}
    assert key_paths(task=both) == ["task.ps-0.ports"]
    assert key_paths(task={**both, "ps-0": {"ports": ["81:80"]}}) == []
    assert key_paths(role={"worker": {"ports": [80]}}) == ["role.worker.ports"]
    assert key_paths(role={"worker": {"ports": [80]}}, worker=1) == []
    several = {"role": {"worker": {"ports": [80]}}, "task": {"worker-1": {"ports": [81]}}}
    assert key_paths(**several) == []
    assert key_paths(**several, worker=3) == ["role.worker.ports"]
    assert key_paths(task={"chief-0": {"ports": [80, "80:90"]}}) == ["task.chief-0.ports"]


def test_an_internal_network_publishes_no_ports() -> None:
    assert key_paths(network={"internal": True}) == []
    published = {"chief": {"ports": [80]}}
    assert key_paths(network={"internal": True}, role=published) == ["network.internal"]
