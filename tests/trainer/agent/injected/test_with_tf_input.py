"""With TensorFlow: `cluster_kit_input` gives each example to one worker, under every strategy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
pytest.importorskip("tensorflow", reason="TensorFlow is in the image, not here")
from trainer.agent.injected.for_programs import cluster_kit_input

EXAMPLES = 21
BEGIN = """
import json, os, pathlib, sys
import tensorflow as tf
import cluster_kit_input
from cluster_kit_input import num_workers, shard

task = os.environ["CLUSTER_KIT_TASK"]

def found(name, parts):
    path = pathlib.Path(os.environ["CLUSTER_KIT_OUTPUT"], f"{name}.{task}.json")
    path.write_text(json.dumps({"workers": num_workers(), "parts": parts}))

def mine():
    return shard(tf.data.Dataset.range(21))
"""
COORDINATOR = (
    BEGIN
    + """
strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver())
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

def whole(dataset):  # one element is all that a worker has of an epoch
    return dataset.batch(1000).repeat()

@tf.function
def from_function():
    return strategy.distribute_datasets_from_function(lambda context: whole(mine()))

@tf.function
def take(iterator):
    return next(iterator)

ways = {"function": lambda: whole(mine()), "distributed": from_function, "dataset": whole(mine())}
for name, way in ways.items():
    batches = iter(coordinator.create_per_worker_dataset(way))
    parts = set()
    for _ in range(400):
        taken = [coordinator.schedule(take, (batches,)) for _ in range(8)]
        coordinator.join()
        parts |= {tuple(value.fetch().tolist()) for value in taken}
        if len(parts) == num_workers():
            break
    found(name, [list(part) for part in parts])
assert int(cluster_kit_input.worker_index()) == 0
"""
)
ALL_REDUCE = (
    BEGIN
    + """
strategy = tf.distribute.MultiWorkerMirroredStrategy()
per_worker = strategy.distribute_datasets_from_function(lambda context: mine().batch(3))
whole = strategy.experimental_distribute_dataset(mine().batch(4))
for name, data in {"function": per_worker, "dataset": whole}.items():
    ids = []
    for batch in data:
        for own in strategy.experimental_local_results(batch):
            ids += own.numpy().tolist()
    found(name, [ids])
"""
)
SESSIONS = (
    BEGIN
    + """
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    batch = tf.compat.v1.data.make_one_shot_iterator(mine().batch(1000)).get_next()
    found("session", [session.run(batch).tolist()])
"""
)


def cluster_of(free_port, *names: str) -> dict[str, list[str]]:
    cluster: dict[str, list[str]] = {}
    for name in names:
        cluster.setdefault(name.partition("-")[0], []).append(f"127.0.0.1:{free_port()}")
    return cluster


def run_all(
    run_task,
    free_port,
    folder: Path,
    text: str,
    programs: tuple[str, ...],
    servers: tuple[str, ...],
) -> None:
    """Run `text` as a user's program on all of `programs`, the leader first."""
    cluster = cluster_of(free_port, *programs, *servers)
    shared = {
        "CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_LEADER": programs[0],
        "CLUSTER_KIT_SERVERS": ",".join(servers),
    }  # fmt: skip
    file = folder / "train.py"
    file.write_text(text)
    for name in servers:
        run_task(name, cluster, "serve", **shared)
    tasks = [run_task(name, cluster, "run", str(file), **shared) for name in programs]
    outputs = [task.communicate(timeout=120)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0] * len(tasks), outputs


def parts_of(folder: Path, way: str) -> list[list[int]]:
    """Returns the parts of an epoch that all workers got."""
    told = [json.loads(file.read_text()) for file in folder.glob(f"{way}.*.json")]
    parts = [part for one in told for part in one["parts"]]
    assert {one["workers"] for one in told} == {len(parts)}
    return parts


def assert_each_once(parts: list[list[int]], workers: int) -> None:
    assert len(parts) == workers
    assert sorted(example for part in parts for example in part) == list(range(EXAMPLES))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.usefixtures("cold")  # The chief also reads its worker number from /proc/self/environ.
def test_under_a_coordinator(run_task, free_port, tmp_path: Path) -> None:
    servers = ("worker-0", "worker-1", "ps-0")
    run_all(run_task, free_port, tmp_path, COORDINATOR, ("chief-0",), servers)
    for way in ("function", "distributed", "dataset"):
        assert_each_once(parts_of(tmp_path, way), 2)


@pytest.mark.parametrize("programs", [("worker-0", "worker-1"), ("chief-0", "worker-0")])
def test_by_all_reduce(run_task, free_port, tmp_path: Path, programs: tuple[str, ...]) -> None:
    run_all(run_task, free_port, tmp_path, ALL_REDUCE, programs, ())
    for way in ("function", "dataset"):
        assert_each_once(parts_of(tmp_path, way), 2)


def test_in_graph_mode_with_flags(run_task, free_port, tmp_path: Path) -> None:
    programs = ("chief-0", "worker-0", "worker-1")
    run_all(run_task, free_port, tmp_path, SESSIONS, programs, ("ps-0",))
    assert_each_once(parts_of(tmp_path, "session"), 3)


@pytest.mark.parametrize(
    ("cluster", "task", "expected"),
    [
        (None, None, (1, 0)),
        ({"worker": ["a:1"]}, ("worker", 0), (1, 0)),
        ({"worker": ["a:1", "b:1"]}, ("worker", 1), (2, 1)),
        ({"master": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, ("master", 0), (2, 0)),
        ({"master": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}, ("worker", 0), (2, 1)),
        ({"evaluator": ["a:1"]}, ("evaluator", 0), (1, 0)),
        ({"worker": ["a:1", "b:1"], "evaluator": ["c:1"]}, ("evaluator", 0), (1, 0)),
    ],
)
def test_which_tasks_share_the_data(monkeypatch, cluster, task, expected) -> None:
    config = {"cluster": cluster, "task": {"type": task[0], "index": task[1]}} if cluster else {}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config) if config else "")
    monkeypatch.setenv("CLUSTER_KIT_SERVERS", "")
    found = cluster_kit_input.num_workers(), int(cluster_kit_input.worker_index())
    assert found == expected


def test_a_users_module_of_the_same_name_takes_precedence(
    run_task, free_port, tmp_path: Path
) -> None:
    (tmp_path / "cluster_kit_input.py").write_text("whose = 'mine'\n")
    (tmp_path / "train.py").write_text("import cluster_kit_input\nprint(cluster_kit_input.whose)\n")
    task: subprocess.Popen = run_task(
        "worker-0", {"worker": [f"127.0.0.1:{free_port()}"]}, "run", str(tmp_path / "train.py")
    )
    assert "mine" in task.communicate(timeout=60)[0]
    assert task.returncode == 0
