"""Errors on Kubernetes are reported with a hint: permissions, room, no server at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit import labels
from cluster_kit.platforms.kubernetes import kubernetes_api
from cluster_kit.platforms.kubernetes.kubernetes_engine import KubernetesEngine
from tests.fakes.kubernetes import FakeKubernetes
from tests.fakes.kubernetes_server import config
from tests.unit.command_line import Cli
from tests.unit.run.on_kubernetes import UP, fake, left

__all__ = ["fake"]
pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("behaves", "code", "words", "hint"),
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
         "Kubernetes does not accept your credentials", "log in"),
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
def test_errors_are_reported_with_a_hint(
    cli: Cli, fake: FakeKubernetes, behaves: dict[str, Any], code: int, words: str, hint: str
) -> None:
    for key, value in behaves.items():
        setattr(fake, key, value)
    result = cli(*UP)
    assert (words in result.err, hint in result.err) == (True, True), result.err
    assert result.code == code, result.err
    fake.refuses.clear()
    assert left(fake) <= {"persistentvolumeclaims"}, "nothing half-made is left"


def test_a_user_who_may_not_create_secrets_needs_none(cli: Cli, fake: FakeKubernetes) -> None:
    fake.refuses = {("GET", "secrets"): (403, 'secrets is forbidden: User "u" cannot list')}
    assert cli(*UP).code == 0
    assert left(fake) == {"persistentvolumeclaims"}


def test_a_secret_that_could_not_be_removed_is_not_created(cli: Cli, fake: FakeKubernetes) -> None:
    fake.denied = {"secrets"}
    assert cli(*UP).code == 0
    assert ("POST", "secrets") not in fake.asked


def test_a_secret_for_an_applied_file_belongs_to_the_user(cli: Cli, fake: FakeKubernetes) -> None:
    fake.refuses = {("GET", "secrets"): (403, 'secrets is forbidden: User "u" cannot list')}
    files = {"metadata": {"name": "ck-demo-files-0", "labels": {labels.CLUSTER: "demo"}}}
    mine = {"metadata": {"name": "ck-demo-env"}}
    fake.objects = {("configmaps", "ck-demo-files-0"): files, ("secrets", "ck-demo-env"): mine}
    KubernetesEngine().remove("demo")
    assert [*fake.objects] == [("secrets", "ck-demo-env")]


@pytest.mark.parametrize("verb", ["list", "delete"])
def test_permissions_for_the_end_are_checked_too(cli: Cli, fake: FakeKubernetes, verb: str) -> None:
    fake.denied = {"services"}
    result = cli("doctor", "demo", "--engine", "kubernetes")
    words = " ".join(
        (result.out + result.err).split()
    )  # a narrow terminal breaks the table's lines
    assert result.code == 3 and f"{verb} services" in words


def test_no_cluster_and_one_that_does_not_answer(
    root: Path, cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "kubeconfig").write_text(config("http://127.0.0.1:9"))
    result = cli(*UP)
    assert (
        result.code == 4
        and "does not answer" in result.err
        and "kubectl cluster-info" in result.err
    )
    monkeypatch.setenv("KUBECONFIG", str(root / "none"))
    result = cli(*UP)
    assert result.code == 3 and "no Kubernetes cluster is configured" in result.err


def test_without_the_client_the_message_says_what_to_install(
    cli: Cli, fake: FakeKubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kubernetes", None)
    result = cli(*UP)
    assert result.code == 3 and "pip install 'cluster-kit[kubernetes]'" in result.err
    assert kubernetes_api.INSTALL in result.err


def test_an_empty_dir_is_refused_since_its_output_cannot_be_read(
    cli: Cli, fake: FakeKubernetes
) -> None:
    alone = ("--chief", "0", "--ps", "0")
    result = cli(*UP, *alone, "--set", "kubernetes.output=emptyDir")
    assert result.code == 3 and 'output = "pvc"' in result.err


def test_doctor_names_the_server_and_missing_permissions(cli: Cli, fake: FakeKubernetes) -> None:
    result = cli("doctor", "--engine", "kubernetes")
    assert result.code == 0 and "v1.35.0" in result.out and "mine" in result.out
    fake.denied = {"jobs", "pods"}
    result = cli("doctor", "demo", "--engine", "kubernetes")
    assert result.code == 3 and "create jobs" in result.out and "get pods/log" in result.out
