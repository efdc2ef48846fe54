"""Clusters on one host keep out of each other's way; --keep, status, logs and down."""

from __future__ import annotations

import json
import signal
import tarfile
import urllib.request

import docker

from tests.e2e.running import read_until, running
from tests.e2e.waiting import wait_for
from tests.kit import Kit, mine
from tests.unit.metrics.runs import Read

QUICK = ("--args=--epochs 1 --steps-per-epoch 5",)


def test_one_manifest_runs_twice_at_once_under_two_names(
    kit: Kit, client: docker.DockerClient
) -> None:
    names = [f"{kit.name}-a", f"{kit.name}-b"]
    quick = (*QUICK, "--set", "evaluator=0")
    processes = [kit.start("up", "smoke", "--name", name, *quick) for name in names]
    said = [process.communicate(timeout=180)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    ips = [{task["ip"] for task in kit.outcome(name)["tasks"]} for name in names]
    assert not ips[0] & ips[1]
    told = Read(kit.run("metrics", *names).stdout)
    assert told.all("run_success") == [1, 1] and told.all("task_steps_total") == [5, 5]
    assert len(used := told.all("task_cpu_seconds_total")) == 6 and min(used) > 0.1
    assert min(told.all("task_network_transmit_bytes_total")) > 1000
    left = (kit.root / "runs" / names[0] / "latest" / "metrics.prom").read_text()
    assert Read(left)("task_up", task="ps-0") == 0
    assert kit.run("report").returncode == 0
    page = kit.root / "two.html"
    assert kit.run("report", *names, "-o", str(page)).returncode == 0
    assert page.read_text().count('"cluster":"') == 2
    listed = json.loads(kit.run("runs", "list", "--json").stdout)
    assert {run["cluster"] for run in listed} == set(names)
    assert "seconds" in kit.run("runs", "diff", *names).stdout
    assert "nothing to remove" in kit.run("runs", "prune", "--keep", "10").stderr
    shown = runs_on_tensorboard(kit, *names)
    assert {run.split("/")[0].rpartition("-2")[0] for run in shown} == set(names), shown
    archive = kit.root / "bug.tar.gz"
    assert kit.run("bug-report", names[0], "-o", str(archive)).returncode == 0
    with tarfile.open(archive) as made:
        assert any(name.endswith("logs/chief-0.log") for name in made.getnames())
    assert mine(client, kit.name) == ([], [])


def runs_on_tensorboard(kit: Kit, *names: str) -> list[str]:
    """The runs that TensorBoard has found, by its own interface; it is ended by Ctrl-C."""
    with running(kit, "tensorboard", *names) as process:
        said = read_until(process, "TensorBoard: ")
        url = said.rpartition("TensorBoard: ")[2].split()[0]
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        found = wait_for("both runs", lambda: both(direct, url, len(names)))
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and "TensorBoard ended" in said
    return found


def both(direct: urllib.request.OpenerDirector, url: str, count: int) -> list[str] | None:
    with direct.open(f"{url}data/runs", timeout=10) as answer:
        found: list[str] = json.load(answer)
    return found if len({run.partition("/")[0] for run in found}) == count else None


def test_a_kept_cluster_can_be_looked_at_and_removed(kit: Kit, client: docker.DockerClient) -> None:
    assert kit.run("up", "smoke", "--name", kit.name, "--keep", *QUICK).returncode == 0
    status = json.loads(kit.run("status", kit.name, "--json").stdout)
    tasks = {task["name"]: task for task in status[kit.name]}
    assert set(tasks) == {"chief-0", "worker-0", "ps-0", "evaluator-0"}
    assert tasks["chief-0"]["step"] == 5
    logs = kit.run("logs", kit.name, "chief-0")
    assert "epoch 1/1" in logs.stdout
    assert kit.run("logs", kit.name, "worker-9").returncode == 2
    assert kit.run("down", kit.name).returncode == 0
    assert mine(client, kit.name) == ([], [])
    again = kit.run("down", kit.name)
    assert again.returncode == 0
    assert "nothing to remove" in again.stderr
