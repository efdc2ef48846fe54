"""`doctor` on the command line checks the cluster that `up` makes with the same options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_kit.cli import doctor
from cluster_kit.facts import HostFacts
from cluster_kit.host import Host
from cluster_kit.platforms.platform import Check
from cluster_kit.resolved import Cluster
from tests.fakes.stage import Stage, stage
from tests.unit.command_line import Cli

__all__ = ["stage"]


@pytest.fixture
def checked(root: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[Cluster | None]:
    """Records the checked clusters; None for the host alone."""
    clusters: list[Cluster | None] = []

    def check(_host: Host, _: HostFacts, cluster: Cluster | None) -> list[Check]:
        clusters.append(cluster)
        return [Check("engine", "ok", "answers")]

    monkeypatch.setattr(doctor, "check_host", check)
    monkeypatch.setattr(doctor, "left_behind", lambda *_: [])
    monkeypatch.setattr(doctor, "check_strangers", lambda *_: [Check("users", "ok", "nobody else")])
    return clusters


def test_a_left_over_tensorboard_is_reported(
    cli: Cli, checked: list[Cluster | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "left_behind", lambda *_: ["cluster-kit-tensorboard-0f"])
    result = cli("doctor", "--json")
    (line,) = [line for line in json.loads(result.out) if line["name"] == "tensorboard"]
    assert (result.code, line["state"]) == (0, "warn")
    assert line["cure"] == "`docker rm cluster-kit-tensorboard-0f`"


def test_square_brackets_of_a_fix_are_printed(
    cli: Cli, checked: list[Cluster | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Check("client", "warn", "in /a[/b]", "`pip install 'cluster-kit[kubernetes]'`")
    monkeypatch.setattr(doctor, "check_strangers", lambda *_: [line])
    printed = cli("doctor").out
    assert "in /a[/b]" in printed and "'cluster-kit[kubernetes]'" in printed


def test_overrides_equal_those_of_up(cli: Cli, checked: list[Cluster | None]) -> None:
    result = cli("doctor", "demo", "--workers", "3", "--set", "role.worker.cpus=0.5", "--json")
    assert result.code == 0
    assert [line["name"] for line in json.loads(result.out)] == ["engine", "users"]
    (cluster,) = checked
    assert cluster is not None
    assert [t.cpus for t in cluster.tasks if t.role == "worker"] == [0.5, 0.5, 0.5]


def test_a_manifest_that_up_refuses_is_refused(cli: Cli, checked: list[Cluster | None]) -> None:
    result = cli("doctor", "demo", "--set", "role.worker.cpus=99")
    assert (result.code, checked) == (2, [])
    assert "--set role.worker.cpus = 99: this host has" in result.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--workers", "3", "--set", "port=3"),
         "--workers, --set port without a manifest: there is no"
         " cluster to check\n  → name one: `cluster-kit doctor quickstart …`"),
        (("--engine", "podman"),
         "--engine podman: no such engine\n  → one of compose, swarm, kubernetes, slurm"),
    ],
    ids=["overrides", "engine"],
)  # fmt: skip
def test_without_a_manifest_only_an_engine_can_be_given(
    words: tuple[str, ...], why: str, cli: Cli, checked: list[Cluster | None]
) -> None:
    assert cli("doctor", "--engine", "compose").code == 0
    assert checked == [None]
    result = cli("doctor", *words)
    assert (result.code, checked) == (2, [None])
    assert f"error: {why}" in result.err
