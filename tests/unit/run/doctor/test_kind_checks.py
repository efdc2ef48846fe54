"""The lines of `doctor` about an engine that is not the usual one."""

from __future__ import annotations

import pytest

from cluster_kit.facts import EngineKind
from cluster_kit.run.doctor import check_kind
from tests.make import cluster, gpus, host


def test_the_usual_engine_has_no_line() -> None:
    assert not list(check_kind(EngineKind(), cluster()))


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (EngineKind(rootless=True), "rootless", "which is this user on the host"),
        (EngineKind(desktop=True), "desktop", "no route to the tasks' addresses"),
        (EngineKind(remote="ssh://far"), "remote", "on another machine (ssh://far)"),
        (EngineKind(outside=True), "container", "the engine is outside"),
        (EngineKind(unlimited=("cpus",)), "limits", "cannot limit cpus"),
        (EngineKind(machine="aarch64"), "processor", "can be built for it, but was not tested"),
        (EngineKind(machine="ppc64le"), "processor", "built for x86_64 and aarch64 only"),
    ],
)
def test_each_difference_has_its_line(kind: EngineKind, name: str, words: str) -> None:
    (check,) = check_kind(kind, None)
    assert check.name == name and words in check.found
    assert bool(check.hint) is (check.state != "ok")


def test_a_requested_limit_that_cannot_be_enforced_fails() -> None:
    kind = EngineKind(rootless=True, unlimited=("cpus", "memory"))
    asks = cluster(role={"worker": {"memory": "1g"}}, task={"ps-0": {"cpus": 0.5}})
    *_, limits = check_kind(kind, asks)
    assert limits.state == "fail"
    assert "ps-0: cpus, worker-0: memory, worker-1: memory" in limits.found
    *_, free = check_kind(kind, cluster())
    assert free.state == "warn"


def test_on_an_unknown_processor_only_a_users_image_runs() -> None:
    (check,) = check_kind(EngineKind(machine="riscv64"), cluster())
    assert check.state == "fail" and 'image = "' in check.hint
    assert not list(check_kind(EngineKind(machine="riscv64"), cluster(image="mine:1")))


@pytest.mark.parametrize("machine", ["aarch64", "arm64"])
def test_on_arm64_the_kits_image_is_tried_and_the_gpu_image_refused(machine: str) -> None:
    kind = EngineKind(machine=machine)
    (check,) = check_kind(kind, cluster())
    assert check.state == "warn" and check.hint
    (check,) = check_kind(kind, cluster(host(gpus=gpus(2)), gpus="auto"))
    assert check.state == "fail" and 'gpus = "none"' in check.hint
    assert not list(check_kind(kind, cluster(build="image")))
