"""Scripts for Slurm, and what they would give each task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster_kit.platforms.platform import platform_of
from cluster_kit.resolved import Cluster
from tests.fakes.slurm import submit
from tests.golden.test_golden import HERE, rendered_anew
from tests.make import cluster

GOLDEN = rendered_anew(HERE / "slurm.toml")
SLURM = {"trainer": "kit", "datasets": "/shared/datasets"}
TWO = [("n1,n2", "3,4")]
PLACED = """
port=20000 run=$PWD
place_all > places || exit
read_places "$PWD"
mkdir -p output
write_cluster > output/cluster.json
for task in "${tasks[@]}"; do
  given=() command=()
  variables "$task" "$PWD"
  arguments "$task" "$PWD"
  printf '%s\\0' "$task" "${#given[@]}" "${given[@]}" "${#command[@]}" "${command[@]}"
done > told
"""
"""Replaces a script's end: writes down what all tasks would get."""


def planned(**keys: Any) -> Cluster:
    return cluster(**{"engine": "slurm", "slurm": SLURM, **keys})


def script(**keys: Any) -> str:
    return platform_of("slurm").render(planned(**keys))


def parts_of(text: str) -> int:
    return text.count("#SBATCH hetjob") + 1


def told(text: str, folder: Path) -> dict[str, tuple[dict[str, str], list[str]]]:
    """Returns what a script would give each task: variables and command, by the task's name."""
    head, cut, _ = text.rpartition("if [[ ${1:-} == task ]]")
    assert cut
    job = submit(head + PLACED, folder, [("n1,n2,n3", "40(x3)")] * parts_of(text))
    assert job.code == 0, job.said
    words = iter((folder / "told").read_bytes().decode("utf-8", "surrogateescape").split("\0"))
    found = {}
    while name := next(words):
        given = [next(words) for _ in range(int(next(words)))]
        command = [next(words) for _ in range(int(next(words)))]
        found[name] = (dict(one.split("=", 1) for one in given), command)
    return found


def addresses(folder: Path) -> dict[str, str]:
    lines = (line.split() for line in (folder / "places").read_text().splitlines())
    return {task: f"{host}:{port}" for task, _, host, port in lines}
