"""A cluster whose `up` has ended: real processes, locks and containers.

The fake engine covers all moments: tests/unit/run/test_attach.py.
"""

from __future__ import annotations

import json
import os
import time

import docker
from docker.models.containers import Container

from tests.e2e.evidence import output
from tests.e2e.running import STEPS, read_until, running
from tests.kit import Kit, mine

QUICK = ("--program", STEPS, "--set", "evaluator=0")


def policies(container: Container) -> set[int]:
    """The policies by which the kernel schedules a container's processes."""
    top = container.top()
    at = top["Titles"].index("PID")
    return {os.sched_getscheduler(int(row[at])) for row in top["Processes"]}


def test_attach_continues_a_run_whose_up_was_killed(kit: Kit, client: docker.DockerClient) -> None:
    stays = ("--args", "go", *QUICK)  # A command for this cluster finds a run that has not ended.
    with running(kit, "up", "smoke", "--name", kit.name, *stays) as process:
        read_until(process, "ready")
        told = kit.run("attach", kit.name)
        assert (told.returncode, f"by process {process.pid}" in told.stderr) == (3, True), told
        process.kill()
        process.wait(timeout=10)
    again = kit.run("up", "smoke", "--name", kit.name, *stays)
    assert again.returncode == 3
    assert f"`cluster-kit attach {kit.name}`" in again.stderr
    with running(kit, "attach", kit.name) as attached:
        read_until(attached, "chief-0")
        (output(kit) / "go").touch()
        printed, _ = attached.communicate(timeout=60)
    assert attached.returncode == 0, printed
    outcome = kit.outcome()
    assert (outcome["success"], outcome["reason"]) == (True, "finished")
    assert {task["exit_code"] for task in outcome["tasks"]} == {0}
    assert {task["restarts"] for task in outcome["tasks"]} == {0}
    assert {"plan", "up", "first_step", "train", "down"} <= outcome["timings_s"].keys()
    run = kit.root / "runs" / kit.name / "latest"
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    heard = sorted((event["task"], event["action"]) for event in events)
    assert [h for h in heard if h[0] == "ps-0"] == [
        ("ps-0", "create"), ("ps-0", "die"), ("ps-0", "start"),
    ]  # fmt: skip
    assert (run / "logs" / "chief-0.log").stat().st_size > 0
    assert mine(client, kit.name) == ([], [])


def test_wait_returns_the_end_of_a_detached_cluster(kit: Kit, client: docker.DockerClient) -> None:
    as_batch_job = "role.ps.environment={CLUSTER_KIT_SCHEDULING='batch'}"
    left = kit.run("up", "smoke", "--name", kit.name, "--detach", "--set", as_batch_job, *QUICK)
    assert left.returncode == 0, left.stderr
    containers = mine(client, kit.name)[0]
    assert len(containers) == 3
    (ps,) = (one for one in containers if one.name.endswith("ps-0"))
    until = time.monotonic() + 20
    while os.SCHED_BATCH not in policies(ps):
        assert time.monotonic() < until, "it is not scheduled as a batch job"
        time.sleep(0.1)
    assert not any(os.SCHED_BATCH in policies(one) for one in containers if one is not ps)
    waited = kit.run("wait", kit.name)
    assert waited.returncode == 0, waited.stderr
    assert waited.stderr == ""
    assert kit.outcome()["success"]
    assert mine(client, kit.name) == ([], [])
