"""Whole runs with a JobSet, on an API server of Kubernetes in this process."""

from __future__ import annotations

import json
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.platforms.kubernetes import kubernetes_start
from cluster_kit.run import watch
from tests.fakes.kubernetes import FakeKubernetes
from tests.unit.command_line import Cli
from tests.unit.run.on_kubernetes import UP, fake, left, outcome

__all__ = ["fake"]
pytestmark = pytest.mark.processes
IN_SET = (*UP, "--set", "kubernetes.jobset=true")
FAILED = {"event": "end", "exit_code": 5, "reason": "failed", "message": "x", "tasks": ["ps-0"]}


@pytest.fixture(autouse=True)
def _installed(fake: FakeKubernetes) -> None:
    fake.knows_sets = True


def paced(fake: FakeKubernetes) -> None:
    """Let tasks end one after the other: worker-1 and ps-0 first, then the leader, whose end
    deletes both workers; worker-0 has not ended by then."""
    get, looks = fake.get, count()
    fake.lasts_s = 60.0

    def looked(kind: str, name: str, query: dict[str, str], body: dict[str, Any]) -> Any:
        if kind == "pods" and not name and (at := next(looks)) in (12, 20):
            fake.lasts_s = 0.0
            fake.lasts = {"worker-0": 60.0} | ({"chief-0": 60.0} if at < 20 else {})
        return get(kind, name, query, body)

    fake.get = looked  # type: ignore[method-assign]


def test_a_jobset_ends_with_its_leader_and_the_logs_of_its_tasks_are_kept(
    root: Path, cli: Cli, fake: FakeKubernetes
) -> None:
    fake.lasts_s = 60.0
    assert cli(*IN_SET, "--detach").code == 0
    paced(fake)  # from now on: `wait` has seen worker-0 before it is deleted
    result = cli("wait", "demo")
    assert result.code == 0, result.err
    assert ("POST", "jobsets") in fake.asked and ("POST", "jobs") not in fake.asked
    assert outcome(root)["success"]
    codes = {task["name"]: task["exit_code"] for task in outcome(root)["tasks"]}
    assert codes == {"chief-0": 0, "worker-0": 143, "worker-1": 0, "ps-0": 0}
    logs = root / "runs/demo/latest/logs"
    assert "hello from ck-demo-worker-0-1-" in (logs / "worker-1.log").read_text()
    assert left(fake) == {"persistentvolumeclaims"}


def test_a_failed_leader_ends_the_jobset_with_its_reason(
    root: Path, cli: Cli, fake: FakeKubernetes
) -> None:
    fake.says = {"chief-0": [{"event": "ready"}, {**FAILED, "time": time.time() + 3}]}
    fake.codes = {"chief-0": 5, "ps-0": 1}
    paced(fake)
    result = cli(*IN_SET)
    found = outcome(root)
    assert (result.code, found["reason"], found["blame"]) == (5, "failed", "ps-0"), result.err
    assert "hello from ck-demo-ps-0-0-" in (root / "runs/demo/latest/logs/ps-0.log").read_text()
    assert left(fake) == {"persistentvolumeclaims"}


def test_status_logs_and_down_find_the_tasks_of_a_jobset(
    root: Path, cli: Cli, fake: FakeKubernetes
) -> None:
    assert cli(*IN_SET, "--keep").code == 0
    assert {"jobsets", "jobs", "pods"} <= left(fake), "--keep"
    seen = json.loads(cli("status", "demo", "--json").out)["demo"]
    assert [task["name"] for task in seen] == ["chief-0", "worker-0", "worker-1", "ps-0"]
    assert "hello from ck-demo-ps-0-0" in cli("logs", "demo", "ps-0").out
    assert cli("down", "demo").code == 0
    assert left(fake) == {"persistentvolumeclaims"}


def test_a_jobset_that_takes_too_long_is_suspended_as_a_whole(
    root: Path, cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.lasts_s, fake.says = 60.0, {"chief-0": [{"event": "ready"}]}
    monkeypatch.setattr(watch, "OVERDUE_SLACK_S", -2.9)
    result = cli(*IN_SET, "--set", "deadline.start=1", "--set", "deadline.job=2")
    assert result.code == 6, result.err
    patched = [path for method, path in fake.asked if method == "PATCH"]
    assert patched == ["jobsets/ck-demo"], "its controller would resume Jobs"
    assert "hello from ck-demo-ps-0-0" in (root / "runs/demo/latest/logs/ps-0.log").read_text()
    assert left(fake) == {"persistentvolumeclaims"}


def test_a_queue_holds_the_whole_jobset_back_until_there_is_room(
    root: Path, cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This may last longer than any other reason that keeps pods from starting."""
    monkeypatch.setattr(kubernetes_start, "LONGEST_S", 0.5)
    get, pods_while_held, until = fake.get, [], time.monotonic() + 60.0

    def admits(kind: str, name: str, query: dict[str, str], body: dict[str, Any]) -> Any:
        nonlocal until
        if kind == "jobsets" and ("jobsets", "ck-demo") in fake.objects:
            until = min(until, time.monotonic() + 0.8)
            pods_while_held.append([one for one in fake.objects if one[0] == "pods"])
            if time.monotonic() > until:
                monkeypatch.setattr(kubernetes_start, "LONGEST_S", 60.0)  # the machine may be busy
                fake.patch("jobsets", "ck-demo", {}, {"spec": {"suspend": False}})
        return get(kind, name, query, body)

    fake.get = admits  # type: ignore[method-assign]
    result = cli(*IN_SET, "--set", "kubernetes.queue=gpus")
    assert result.code == 0, result.err
    assert pods_while_held[:3] == [[("pods", "ck-demo-reader")]] * 3
    assert outcome(root)["success"]


@pytest.mark.parametrize(
    ("behaves", "code", "words", "hint"),
    [
        ({"knows_sets": False}, 3, "JobSet is not installed in this Kubernetes cluster",
         "leave `kubernetes.jobset` out"),
        ({"denied": {"jobsets"}}, 3, "you may not create jobsets, patch jobsets", "Role"),
        ({"refuses": {("POST", "jobsets"): (403, 'jobsets is forbidden: User "u" cannot')}}, 4,
         "you may not do that in this namespace", "Role"),
        ({"controls_sets": False}, 4, "chief-0, worker-0, worker-1, ps-0: JobSet has made no Job",
         "kubectl get pods -n jobset-system"),
        ({"complaint": 'pods "x" is forbidden: exceeded quota: q'}, 4, "exceeded quota: q",
         "kubectl describe quota"),
    ],
    ids=["not-installed", "rights", "forbidden", "no-controller", "quota"],
)  # fmt: skip
def test_errors_of_a_jobset_are_reported_with_a_hint(
    cli: Cli, fake: FakeKubernetes, behaves: dict[str, Any], code: int, words: str, hint: str
) -> None:
    for key, value in behaves.items():
        setattr(fake, key, value)
    result = cli(*IN_SET)
    assert (words in result.err, hint in result.err) == (True, True), result.err
    assert result.code == code, result.err
    fake.refuses.clear()
    assert left(fake) <= {"persistentvolumeclaims"}, "nothing half-made is left"


def test_doctor_reports_whether_jobset_is_installed(
    cli: Cli, root: Path, fake: FakeKubernetes
) -> None:
    with (root / "compose" / "demo.toml").open("a") as file:
        file.write("[kubernetes]\njobset = true\n")
    result = cli("doctor", "demo", "--engine", "kubernetes")
    assert result.code == 0 and "jobset.x-k8s.io/v1alpha2" in result.out, result.out
    fake.knows_sets = False
    result = cli("doctor", "demo", "--engine", "kubernetes")
    assert result.code == 3 and "not installed" in result.out
