"""Graph mode in real containers: it ends by itself, and continues after a task was killed."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import docker
import pytest

from tests.e2e.drilled import drilled
from tests.e2e.evidence import codes, log, output, saved_step
from tests.e2e.report_page import reported
from tests.e2e.running import read_until, running
from tests.kit import Kit

SHORT = "--steps 800 --learning-rate 0.02 --log-steps 100 --save-secs 1 --pause-ms 5"
SAVED = 'at = { calm = "2s" }'
"""A checkpoint is written every second, so the one after the previous fault exists."""


def command(kit: Kit, arguments: str = "", *more: str) -> list[str]:
    return ["up", "linear-regression", "--name", kit.name, f"--args={SHORT} {arguments}", *more]


def test_it_ends_with_the_line_each_workers_share_and_a_requested_save(kit: Kit) -> None:
    # Long enough for a profile: 5 s also where a step takes nothing but its pause.
    with running(kit, *command(kit, "--pause-ms 20")) as process:
        read_until(process, " | step ")
        (output(kit) / "save-now").touch()
        printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    reported(kit, "loss", "steps_per_s")
    metrics = kit.outcome()["metrics"]
    assert abs(metrics["w"] - 2) <= 0.02
    assert abs(metrics["b"] + 1) <= 0.02
    assert metrics["steps_of_worker-0"] + metrics["steps_of_worker-1"] == metrics["updates"]
    assert 800 <= metrics["updates"] <= 801
    assert min(metrics["steps_of_worker-0"], metrics["steps_of_worker-1"]) > 100
    assert codes(kit) == {"worker-0": 0, "worker-1": 0, "ps-0": 0}
    assert re.search(r"step \d+  loss [\d.]+  w [\d.]+  b -[\d.]+", log(kit, "worker-1"))
    assert "saved on request: manual.ckpt-" in printed
    kept = [Path(name).name for name in (output(kit) / "checkpoints").glob("*.index")]
    assert {name.split("-")[0] for name in kept} == {"manual.ckpt", "model.ckpt"}
    its_own_speed_is_predicted(kit)


def its_own_speed_is_predicted(kit: Kit) -> None:
    """Assert that the run's profile gives the speed that the run had, and half of it for half."""
    done = kit.run("measure", kit.name)
    assert done.returncode == 0, done.stdout + done.stderr
    done = kit.run("predict", kit.name, "--workers", "1,2", "--ps", "1", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    one, two = json.loads(done.stdout)["points"]
    assert two["images_per_s"] == pytest.approx(two["measured"], rel=0.25)
    assert one["images_per_s"] == pytest.approx(two["images_per_s"] / 2, rel=0.25)


def test_two_workers_find_the_line_of_a_csv_file(kit: Kit, tmp_path: Path) -> None:
    data = tmp_path / "measurements"
    data.mkdir()
    rows = [f"{n / 20 - 1},{5 * (n / 20 - 1) + 3}" for n in range(41)]
    (data / "points.csv").write_text("\n".join(["x,y", *rows]))
    given = "--csv points.csv --tolerance 0.1 --learning-rate 0.05 --steps 400 --pause-ms 2"
    done = kit.run(
        *("up", "linear-regression", "--name", kit.name, "--data", str(data)), f"--args={given}"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    metrics = kit.outcome()["metrics"]
    assert abs(metrics["w"] - 5) <= 0.1 and abs(metrics["b"] - 3) <= 0.1
    assert min(metrics["steps_of_worker-0"], metrics["steps_of_worker-1"]) > 0


def test_killed_tasks_are_restarted_and_the_job_finishes(
    kit: Kit, client: docker.DockerClient
) -> None:
    """They are killed in turn, each after a checkpoint; a task without variables loses nothing."""
    crashed = tuple(("crash", task, SAVED) for task in ("worker-1", "ps-0", "worker-0"))
    arguments = f"--args={SHORT} --update sync --steps 1500"
    found = drilled(kit, client, "linear-regression", crashed, arguments)
    assert [fault["steps_lost"] <= fault["steps_at_risk"] for fault in found.faults] == [True] * 3
    assert found.faults[0]["steps_lost"] == 0
    metrics = kit.outcome()["metrics"]
    assert metrics["w_error"] <= 0.02
    assert 1500 <= metrics["updates"] <= 1501
    resumed = [int(step) for step in re.findall(r"continuing at global step (\d+)", found.said)]
    assert len(resumed) == 2, "the chief and the ps had lost nothing when worker-1 crashed"
    assert 0 < resumed[0] < resumed[1] < 1500


@pytest.mark.more
def test_workers_do_not_end_without_an_asynchronous_chief(
    kit: Kit, client: docker.DockerClient
) -> None:
    """The other worker continues while the chief is lost, and must not end before it is back."""
    arguments = f"--args={SHORT} --update async --steps 3000"
    found = drilled(kit, client, "linear-regression", (("crash", "worker-0", SAVED),), arguments)
    metrics = kit.outcome()["metrics"]
    assert metrics["w_error"] <= 0.02
    assert 3000 <= metrics["updates"] <= 3001
    resumed = [int(step) for step in re.findall(r"continuing at global step (\d+)", found.said)]
    assert 0 < resumed[-1] < 3000


def test_a_stopped_job_has_saved_and_continues(kit: Kit) -> None:
    with running(kit, *command(kit, "--save-secs 600 --steps 100000")) as process:
        read_until(process, " | step ")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    stopped_at = saved_step(kit)
    assert stopped_at > 0
    done = kit.run(*command(kit, f"--steps {stopped_at + 100} --tolerance 2", "--resume"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"continuing at global step {stopped_at}" in done.stderr


@pytest.mark.more
def test_a_loss_that_is_not_finite_is_in_the_leaders_last_message(kit: Kit) -> None:
    done = kit.run(*command(kit, "--learning-rate 1e30"))
    assert done.returncode == 5
    assert "is not finite" in kit.outcome()["message"]
