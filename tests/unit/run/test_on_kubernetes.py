"""Whole runs on an API server of Kubernetes in this process: ended, detached, found, stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.run import watch
from tests.fakes.kubernetes import FakeKubernetes
from tests.unit.command_line import Cli
from tests.unit.run.on_kubernetes import UP, fake, left, outcome

__all__ = ["fake"]
pytestmark = pytest.mark.processes


def test_a_run_ends_with_its_leaders_verdict_and_leaves_only_its_claim(
    root: Path, cli: Cli, fake: FakeKubernetes
) -> None:
    result = cli(*UP)
    assert result.code == 0, result.err
    found = outcome(root)
    assert found["success"] and found["reason"] == "finished"
    assert {task["name"] for task in found["tasks"]} == {"chief-0", "worker-0", "worker-1", "ps-0"}
    run = root / "runs/demo/latest"
    assert "hello from ck-demo-worker-1-" in (run / "logs/worker-1.log").read_text()
    assert '"finished"' in (run / "output/progress/chief-0.jsonl").read_text()
    assert (run / "kubernetes.yaml").exists()
    assert left(fake) == {"persistentvolumeclaims"}, "results are in the claim"
    assert "no task of demo" in cli("status", "demo", "--engine", "kubernetes").err


def test_each_run_has_a_separate_folder_in_the_claim(
    root: Path, cli: Cli, fake: FakeKubernetes
) -> None:
    made: dict[str, Any] = {}
    post = fake.post

    def keep(kind: str, name: str, query: dict[str, str], body: dict[str, Any]) -> Any:
        made[body["metadata"]["name"]] = json.loads(json.dumps(body))
        return post(kind, name, query, body)

    fake.post = keep  # type: ignore[method-assign]
    assert cli(*UP, "--keep").code == 0
    run = (root / "runs/demo/latest").resolve().name
    spec = made["ck-demo-worker"]["spec"]["template"]["spec"]
    mounts = {one["name"]: one for one in spec["containers"][0]["volumeMounts"]}
    assert mounts["output"]["subPath"] == f"demo/{run}"
    reader = made["ck-demo-reader"]["spec"]["containers"][0]
    assert reader["volumeMounts"] == [
        {"name": "output", "mountPath": "/output", "subPath": f"demo/{run}", "readOnly": True}
    ]
    assert "$(" not in reader["command"][-1], "Kubernetes would expand it"
    assert {"jobs", "pods"} <= left(fake), "--keep"
    seen = json.loads(cli("status", "demo", "--json").out)["demo"]
    assert [task["name"] for task in seen] == ["chief-0", "worker-0", "worker-1", "ps-0"]
    assert "hello from ck-demo-ps-0" in cli("logs", "demo", "ps-0").out
    assert cli("down", "demo").code == 0
    assert left(fake) == {"persistentvolumeclaims"}


def test_a_detached_run_is_found_waited_for_and_judged(
    root: Path, cli: Cli, fake: FakeKubernetes
) -> None:
    fake.lasts_s = 60.0
    assert cli(*UP, "--detach").code == 0
    assert json.loads(cli("status", "demo", "--json").out)["demo"][0]["state"] != "ended"
    again = cli(*UP)
    assert again.code == 3 and "already up" in again.err
    fake.lasts_s = 0.1
    assert cli("wait", "demo").code == 0
    assert outcome(root)["success"]


def test_its_logs_are_masked_in_later_commands(
    root: Path, cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "token").write_text("hunter2-of-a-file")
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write('[secret]\ntoken = "../token"\n[role.worker]\nsecrets = ["MINE"]\n')
    monkeypatch.setenv("MINE", "hunter2-of-the-caller")
    message = "2026-11-22T10:00:00.5Z has hunter2-of-a-file hunter2-of-the-caller\n"
    fake._log = lambda pod, log=fake._log: log(pod) if pod.endswith("-reader") else (200, message)  # type: ignore[method-assign, misc]
    fake.lasts_s = 60.0
    up = cli(*UP, "--detach")
    assert up.code == 0, up.err
    monkeypatch.delenv("MINE")
    (root / "token").unlink()
    shown = cli("logs", "demo", "worker-0").out
    assert "has *** ***" in shown and "hunter2" not in shown
    fake.lasts_s = 0.1
    waited = cli("wait", "demo")
    run = root / "runs" / "demo" / "latest"
    assert "has *** ***" in (run / "logs" / "worker-0.log").read_text(), waited.err
    kept = [path for path in run.resolve().rglob("*") if path.is_file()]
    assert not [path.name for path in kept if b"hunter2" in path.read_bytes()]


def test_a_run_that_takes_too_long_is_stopped_and_its_logs_are_kept(
    root: Path, cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.lasts_s, fake.says = 60.0, {"chief-0": [{"event": "ready"}]}
    monkeypatch.setattr(watch, "OVERDUE_SLACK_S", -2.9)
    result = cli(*UP, "--set", "deadline.start=1", "--set", "deadline.job=2")
    assert result.code == 6, result.err
    assert "hello from ck-demo-ps-0" in (root / "runs/demo/latest/logs/ps-0.log").read_text()
    assert left(fake) == {"persistentvolumeclaims"}


def test_a_server_that_does_not_answer_for_a_while_is_waited_for(
    root: Path, cli: Cli, fake: FakeKubernetes
) -> None:
    fake.lasts_s = 0.6
    answer, refusals = fake.answer, [25]

    def away(method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> Any:
        if "/log?" in path and refusals[0]:
            refusals[0] -= 1
            return 503, "the server is currently unable to handle the request"
        return answer(method, path, query, body)

    fake.answer = away  # type: ignore[method-assign]
    result = cli(*UP, "--set", "deadline.engine=5")
    assert result.code == 0, result.err
    assert outcome(root)["success"]
    assert not refusals[0], "it was away in the middle"
