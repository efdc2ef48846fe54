"""Clusters on one host do not disturb each other; --keep, status, logs and down."""

from __future__ import annotations

import json
import tarfile

import docker

from tests.e2e.board import URL, answering, shown
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine
from tests.unit.metrics.runs import Read

QUICK = "--args=--epochs 1 --steps-per-epoch 5"
KEPT = ("--keep", "--set", "tensorboard=true")


def test_one_manifest_runs_twice_at_once_under_two_names(
    kit: Kit, client: docker.DockerClient
) -> None:
    """One of the two is kept, inspected and removed."""
    names = [f"{kit.name}-a", f"{kit.name}-b"]
    both = zip(names, (KEPT, ("--set", "evaluator=0")), strict=True)
    processes = [kit.start("up", "smoke", "--name", name, QUICK, *more) for name, more in both]
    outputs = [process.communicate(timeout=180)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    ips = [{task["ip"] for task in kit.outcome(name)["tasks"]} for name in names]
    assert not ips[0] & ips[1]
    told = Read(kit.run("metrics", *names).stdout)
    assert told.all("run_success") == [1, 1] and told.all("task_steps_total", task="chief-0") == [
        5,
        5,
    ]
    assert len(used := told.all("task_cpu_seconds_total")) == 7 and min(used) > 0.1
    evaluator, *training = sorted(told.all("task_network_transmit_bytes_total"))
    assert evaluator > 100 and min(training) > 100_000, "it says that it lives, the others train"
    left = (kit.root / "runs" / names[1] / "latest" / "metrics.prom").read_text()
    assert Read(left)("task_up", task="ps-0") == 0
    check_what_is_shown(outputs[0], kit.outcome(names[0])["notes"])
    look_at_the_kept_and_remove_it(kit, client, names[0])
    assert kit.run("report").returncode == 0
    page = kit.root / "two.html"
    assert kit.run("report", *names, "-o", str(page)).returncode == 0
    assert page.read_text().count('"cluster":"') == 2
    listed = json.loads(kit.run("runs", "list", "--json").stdout)
    assert {run["cluster"] for run in listed} == set(names)
    assert "seconds" in kit.run("runs", "diff", *names).stdout
    assert "nothing to remove" in kit.run("runs", "prune", "--keep", "10").stderr
    with shown(kit, *names, runs=5) as board:  # trainings, their hyperparameters, and one evaluator
        found = board.runs()
        assert {run.split("/")[0].rsplit("-", 2)[0] for run in found} == set(names), found
    archive = kit.root / "bug.tar.gz"
    assert kit.run("bug-report", names[0], "-o", str(archive)).returncode == 0
    with tarfile.open(archive) as made:
        assert any(name.endswith("logs/chief-0.log") for name in made.getnames())
    assert mine(client, kit.name) == ([], [])


def look_at_the_kept_and_remove_it(kit: Kit, client: docker.DockerClient, name: str) -> None:
    status = json.loads(kit.run("status", name, "--json").stdout)
    tasks = {task["name"]: task for task in status[name]}
    assert set(tasks) == {"chief-0", "worker-0", "ps-0", "evaluator-0"}
    assert tasks["chief-0"]["step"] == 5
    assert "epoch 1/1" in kit.run("logs", name, "chief-0").stdout
    assert kit.run("logs", name, "worker-9").returncode == 2
    assert kit.run("down", name).returncode == 0
    assert mine(client, name) == ([], [])
    label = f"cluster-kit.tensorboard.cluster={name}"
    assert client.containers.list(all=True, filters={"label": label}) == []
    again = kit.run("down", name)
    assert again.returncode == 0
    assert "nothing to remove" in again.stderr


def check_what_is_shown(output: str, notes: list[str]) -> None:
    """Check the TensorBoard that `up` has started: its port, and everything that it shows."""
    told = URL.search(output)
    assert told, output
    assert any(told[0] in note and "stays" in note for note in notes), notes
    board = answering(told[0], runs=3)
    wait_for("what it has read of both", lambda: board.read_of(("train", "validation")))
    wait_for("the network in TensorBoard", lambda: "train" in board.graphs())
    scalars = board.tags("scalars")
    assert {"loss", "accuracy"} <= scalars["train"] & scalars["validation"]
    assert "learning_rate" in scalars["train"]
    assert {"batch_size", "model", "strategy", "worker tasks"} <= board.hyperparameters()
    assert "keras" in board.graphs()["train"]["tags"]
