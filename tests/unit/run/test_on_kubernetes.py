"""Whole runs on an API server of Kubernetes in this process, and what goes wrong there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.backends.kubernetes import start
from cluster_kit.engine import client as docker_client
from cluster_kit.engine import elsewhere
from cluster_kit.engine.kubernetes import api, client, watching
from cluster_kit.errors import HostError
from cluster_kit.run.watching import watch
from tests.fakes.kubernetes import FakeKubernetes, config, serving
from tests.unit.command_line import Cli

pytestmark = pytest.mark.processes
ENDS = {"event": "end", "exit_code": 0, "reason": "finished", "message": "done", "tasks": []}
UP = ("up", "demo", "--engine", "kubernetes")


def no_docker() -> None:
    raise HostError("no Docker engine answers", "start it")


@pytest.fixture
def fake(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeKubernetes]:
    text = 'format = 1\nname = "demo"\nworker = 2\nps = 1\n'
    (root / "compose" / "demo.toml").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(root / "kubeconfig"))
    for module in (start, client, watching, watch):
        monkeypatch.setattr(module, "POLL_S", 0.02)
    monkeypatch.setattr(watching, "SYNC_S", 0.0)
    monkeypatch.setattr(docker_client, "connect", no_docker)
    monkeypatch.setattr(elsewhere, "FOLLOW_S", 0.02)
    monkeypatch.setattr(start, "PATIENCE_S", 0.05)
    monkeypatch.setattr(start, "NODE_PATIENCE_S", 0.05)
    monkeypatch.setattr(start, "MOUNT_PATIENCE_S", 0.05)
    ready = FakeKubernetes(lasts_s=0.1, says={"chief-0": [{"event": "ready"}, ENDS]})
    with serving(ready, root / "kubeconfig") as made:
        yield made


def outcome(root: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((root / "runs/demo/latest/outcome.json").read_text())
    return read


def left(fake: FakeKubernetes) -> set[str]:
    return {kind for kind, _ in fake.objects}


def test_a_run_ends_as_its_leader_wrote_and_leaves_its_claim_alone(
    root: Path, cli: Cli, fake: FakeKubernetes
) -> None:
    said = cli(*UP)
    assert said.code == 0, said.err
    found = outcome(root)
    assert found["success"] and found["reason"] == "finished"
    assert {task["name"] for task in found["tasks"]} == {"chief-0", "worker-0", "worker-1", "ps-0"}
    run = root / "runs/demo/latest"
    assert "hello from ck-demo-worker-1-" in (run / "logs/worker-1.log").read_text()
    assert '"finished"' in (run / "output/progress/chief-0.jsonl").read_text()
    assert (run / "kubernetes.yaml").exists()
    assert left(fake) == {"persistentvolumeclaims"}, "results are in the claim"
    assert "no task of demo" in cli("status", "demo", "--engine", "kubernetes").err


def test_each_run_has_a_folder_of_its_own_in_the_claim(
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


def test_one_that_was_left_is_found_waited_for_and_judged(
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


@pytest.mark.parametrize(
    ("behaves", "code", "words", "cure"),
    [
        ({"waiting": {"worker-1": ("ImagePullBackOff", "Back-off pulling image")}}, 4,
         "worker-1: ImagePullBackOff: Back-off pulling image", "kubernetes.registry"),
        ({"waiting": {"ps-0": ("Unschedulable", "0/3 nodes: Insufficient cpu")}}, 4,
         "ps-0: Unschedulable: 0/3 nodes", "lower `cpus`"),
        ({"waiting": {"ps-0": ("ContainerCreating", "")}, "unmounted": "mount.nfs: timed out"}, 4,
         "ps-0: FailedMount: mount.nfs: timed out", "kubectl get pvc,pv"),
        ({"complaint": 'pods "x" is forbidden: exceeded quota: q, requested: pods=2'}, 4,
         "exceeded quota: q", "kubectl describe quota"),
        ({"complaint": 'pods "x" is forbidden: failed quota: q: must specify limits.cpu'}, 4,
         "failed quota: q", "give every role `cpus`"),
        ({"refuses": {("POST", "jobs"): (403, 'jobs.batch is forbidden: exceeded quota: q')}}, 4,
         "exceeded quota: q", "kubectl describe quota"),
        ({"refuses": {("POST", "services"): (403, 'services is forbidden: User "u" cannot')}}, 4,
         "you may not do that in this namespace", "Role"),
        ({"refuses": {("POST", "configmaps"): (404, 'namespaces "mine" not found')}}, 4,
         'namespaces "mine" not found', "kubectl create namespace"),
        ({"refuses": {("GET", "jobs"): (401, "Unauthorized")}}, 4,
         "Kubernetes does not know you", "log in"),
        ({"denied": {"networkpolicies"}}, 3, "you may not create networkpolicies", "Role"),
        ({"minor": "30"}, 3, "v1.30.0", "needs 1.33 or newer"),
        ({"evicted": {"chief-0": "The node was low on resource: memory."}}, 4,
         "has ended chief-0 in the middle of the run: Evicted: The node was low", "--resume"),
        ({"codes": {"chief-0": 137}, "says": {"chief-0": [{"event": "ready"}]}}, 4,
         "ck-demo-chief/0 has ended with exit code 137", "memory"),
    ],
    ids=["image", "room", "mount", "quota", "quota-that-counts", "quota-at-once", "forbidden",
         "namespace", "unknown", "rights", "old", "evicted", "killed"],
)  # fmt: skip
def test_what_goes_wrong_is_told_with_its_cure(
    cli: Cli, fake: FakeKubernetes, behaves: dict[str, Any], code: int, words: str, cure: str
) -> None:
    for key, value in behaves.items():
        setattr(fake, key, value)
    said = cli(*UP)
    assert (words in said.err, cure in said.err) == (True, True), said.err
    assert said.code == code, said.err
    fake.refuses.clear()
    assert left(fake) <= {"persistentvolumeclaims"}, "nothing half-made is left"


def test_who_may_not_see_secrets_needs_none(cli: Cli, fake: FakeKubernetes) -> None:
    fake.refuses = {("GET", "secrets"): (403, 'secrets is forbidden: User "u" cannot list')}
    assert cli(*UP).code == 0
    assert left(fake) == {"persistentvolumeclaims"}


@pytest.mark.parametrize("verb", ["list", "delete"])
def test_what_is_done_at_the_end_takes_rights_too(
    cli: Cli, fake: FakeKubernetes, verb: str
) -> None:
    fake.denied = {"services"}
    said = cli("doctor", "demo", "--engine", "kubernetes")
    words = " ".join(
        (said.out + said.err).split()
    )  # the table's lines are broken where it is narrow
    assert said.code == 3 and f"{verb} services" in words


def test_a_run_that_takes_too_long_is_stopped_and_keeps_what_was_said(
    root: Path, cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.lasts_s, fake.says = 60.0, {"chief-0": [{"event": "ready"}]}
    monkeypatch.setattr(watch, "OVERDUE_SLACK_S", -2.9)
    said = cli(*UP, "--set", "deadline.start=1", "--set", "deadline.job=2")
    assert said.code == 6, said.err
    assert "hello from ck-demo-ps-0" in (root / "runs/demo/latest/logs/ps-0.log").read_text()
    assert left(fake) == {"persistentvolumeclaims"}


def test_a_server_that_is_away_for_a_while_is_waited_for(
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
    said = cli(*UP, "--set", "deadline.engine=5")
    assert said.code == 0, said.err
    assert outcome(root)["success"]
    assert not refusals[0], "it was away in the middle"


def test_no_cluster_and_one_that_does_not_answer(
    root: Path, cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "kubeconfig").write_text(config("http://127.0.0.1:9"))
    said = cli(*UP)
    assert said.code == 4 and "does not answer" in said.err and "kubectl cluster-info" in said.err
    monkeypatch.setenv("KUBECONFIG", str(root / "none"))
    said = cli(*UP)
    assert said.code == 3 and "no Kubernetes cluster is configured" in said.err


def test_without_the_client_the_message_says_what_to_install(
    cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kubernetes", None)
    said = cli(*UP)
    assert said.code == 3 and "pip install 'cluster-kit[kubernetes]'" in said.err
    assert api.INSTALL in said.err


def test_an_empty_dir_is_refused_since_nothing_could_be_read(
    cli: Cli, fake: FakeKubernetes
) -> None:
    alone = ("--chief", "0", "--ps", "0")
    said = cli(*UP, *alone, "--set", "kubernetes.output=emptyDir")
    assert said.code == 3 and 'output = "pvc"' in said.err


def test_doctor_names_the_server_and_what_lacks(cli: Cli, fake: FakeKubernetes) -> None:
    said = cli("doctor", "--engine", "kubernetes")
    assert said.code == 0 and "v1.35.0" in said.out and "mine" in said.out
    fake.denied = {"jobs", "pods"}
    said = cli("doctor", "demo", "--engine", "kubernetes")
    assert said.code == 3 and "create jobs" in said.out and "get pods/log" in said.out
