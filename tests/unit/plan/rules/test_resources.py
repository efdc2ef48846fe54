"""Shared memory, ulimits and the network's options: valid values, and limits of the host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit.resolved import Ulimit
from tests.make import cluster, host, problems, problems_of

LEAST = 'format = 1\nname = "demo"\n'


@pytest.mark.parametrize(
    ("written", "pair"),
    [
        (1024, (1024, 1024)),
        ("1:2", (1, 2)),
        (-1, (-1, -1)),
        ("unlimited", (-1, -1)),
        ("0:-1", (0, -1)),
    ],
)
def test_forms_of_a_ulimit(written: Any, pair: tuple[int, int]) -> None:
    (chief,) = cluster(role={"chief": {"ulimits": {"nofile": written}}}).of("chief")
    assert chief.ulimits == (Ulimit("nofile", *pair),)


@pytest.mark.parametrize("written", ["-2", "true", "1.5", '"a"', '"2:1"', '"-1:5"', '""', "[1]"])
def test_invalid_ulimits(written: str, tmp_path: Path) -> None:
    text = f"{LEAST}[role.chief]\nulimits = {{ nofile = {written} }}\n"
    (problem,) = problems_of(text, tmp_path)
    assert problem.key_path == "role.chief.ulimits.nofile"


def test_an_unknown_ulimit() -> None:
    (problem,) = problems(role={"ps": {"ulimits": {"nofiles": 1}}})
    assert problem.key_path == "role.ps.ulimits.nofiles"
    assert "nofile" in problem.hint_text()


def test_shared_memory_fits_into_the_host_and_the_tasks_limit() -> None:
    small = host(memory=2**30)
    (problem,) = problems(small, role={"worker": {"shm_size": "2g"}})
    assert problem.hint_text() == 'at most `shm_size = "1024m"`'
    (problem,) = problems(task={"ps-0": {"shm_size": "2g", "memory": "1g"}})
    assert (problem.key_path, problem.value) == ("task.ps-0.shm_size", "2 GiB")
    assert problems(role={"worker": {"shm_size": "1g", "memory": "1g"}}) == ()


@pytest.mark.parametrize("written", ["575", "65536", '"1400"', "true", "1e3"])
def test_invalid_mtus(written: str, tmp_path: Path) -> None:
    (problem,) = problems_of(f"{LEAST}[network]\nmtu = {written}\n", tmp_path)
    assert problem.key_path == "network.mtu"


def test_tasks_with_gpus_have_more_shared_memory_unless_the_manifest_sets_it() -> None:
    assert cluster(role={"worker": {"shm_size": "128m"}}).of("worker")[0].shm_size == 2**27
    assert cluster().of("worker")[0].shm_size is None
