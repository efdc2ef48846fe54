"""What the manifests in compose/ start: which task leads, and which run the program or a server."""

from __future__ import annotations

import subprocess

import pytest

from cluster_kit.platforms.platform import load, plan
from cluster_kit.resolved import Cluster
from tests.make import MANIFESTS, OWN, ROOT, gpus, host, inputs

FOLDER = ROOT / "compose"
RUNS = {
    # name: (program, tasks that run it, tasks that run a server, data)
    "all-reduce": ("classifier", "worker-0 worker-1 evaluator-0", "", "digits"),
    "clones": ("classifier", "worker-0 worker-1 evaluator-0", "ps-0", "digits"),
    "detection-async": (
        "detection", "chief-0 worker-0 worker-1 evaluator-0", "ps-0", "digit-scenes"
    ),
    "detection-coordinator": (
        "detection", "chief-0 evaluator-0", "worker-0 worker-1 ps-0 ps-1", "digit-scenes"
    ),
    "detection-machines": ("detection", "chief-0 worker-0", "ps-0", "digit-scenes"),
    "detection-sync": (
        "detection", "chief-0 worker-0 worker-1 evaluator-0", "ps-0", "digit-scenes"
    ),
    "linear-regression": ("linear-regression", "worker-0 worker-1", "ps-0", "digits"),
    "mobilenet": ("classifier", "chief-0 evaluator-0", "worker-0 worker-1 ps-0 ps-1", "/data"),
    "one-gpu": ("classifier", "chief-0 evaluator-0", "worker-0 worker-1 ps-0 ps-1", "digits"),
    "quickstart": ("classifier", "chief-0 evaluator-0", "worker-0 worker-1 ps-0 ps-1", "digits"),
    "smoke": ("classifier", "chief-0 evaluator-0", "worker-0 ps-0", "digits"),
}  # fmt: skip


def planned(name: str, count: int = 8) -> Cluster:
    """Returns the cluster on a host with this number of GPUs."""
    read = load(FOLDER / f"{name}.toml")
    assert not read.problems
    return plan(read, inputs(read.manifest), host(gpus=gpus(count)), OWN)


def test_every_manifest_has_a_row() -> None:
    assert {path.stem for path in MANIFESTS} == RUNS.keys()


def test_every_manifest_of_the_repository_is_in_the_wheel() -> None:
    command = ["git", "ls-files", ":(glob)compose/*.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not a clone")
    assert {ROOT / name for name in done.stdout.splitlines()} == {*MANIFESTS}


@pytest.mark.parametrize("name", RUNS)
def test_each_manifest_starts_its_tasks(name: str) -> None:
    program, run, serve, data = RUNS[name]
    made = planned(name)
    assert made.name == name
    assert [task.name for task in made.tasks if not task.serves] == run.split()
    assert [task.name for task in made.tasks if task.serves] == serve.split()
    assert {task.command[1] for task in made.tasks if not task.serves} == {program}
    assert made.data == (data if data == "/data" else f"/opt/datasets/{data}")
    assert made.leader.name == run.split()[0]


def test_properties_of_single_manifests() -> None:
    assert planned("detection-async").chief_job == planned("detection-sync").chief_job == "master"
    assert planned("clones").simulate_gpus == 2
    assert [task.gpus for task in planned("mobilenet").of("worker")] == [("0",), ("1",)]
    on_gpus = {name for name in RUNS if any(task.gpus for task in planned(name).tasks)}
    assert on_gpus == {"mobilenet", "one-gpu"}


def test_two_workers_share_the_only_gpu_of_a_host_or_use_the_cpu() -> None:
    (gpu,) = gpus(1)
    workers = planned("one-gpu", count=1).of("worker")
    assert [task.gpus for task in workers] == [(str(gpu.index),)] * 2
    limits = [task.gpu_memory_mib for task in workers]
    assert limits[0] == limits[1] and 0 < 2 * limits[0] * 2**20 <= gpu.memory
    assert not any(task.gpus for task in planned("one-gpu", count=0).tasks)
    assert "sync" in planned("detection-sync").leader.arguments
    assert "async" in planned("detection-async").leader.arguments
