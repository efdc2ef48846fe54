"""Parallel tests that use the same subnet."""

from __future__ import annotations

from pathlib import Path

import pytest

import cluster_kit as ck
from cluster_kit.testing import clusters
from cluster_kit.util import locks
from tests.fakes.hosts import Machine
from tests.fakes.stage import NAME, Stage

FIXED = "172.30.5.0/24"
LOCK = "cluster-kit-subnet-172-30-5-0-24.lock"


@pytest.fixture
def folder(tmp_path: Path, machine: Machine) -> Path:
    machine.locks_in(tmp_path)
    return tmp_path


def test_a_fixed_subnet_is_used_by_one_test_at_a_time(
    stage: Stage, machine: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "WAIT_S", 0.0)
    mine = ck.load(NAME, root=stage.workspace.root, subnet=FIXED)
    other = ck.load(NAME, root=stage.workspace.root, subnet=FIXED, name="other")
    with clusters.Turns(machine.host).of(mine):
        assert locks.is_locked(folder / LOCK)
        words = f'subnet = "{FIXED}" is taken by another test: the cluster demo'
        with pytest.raises(ck.HostError, match=words), clusters.Turns(machine.host).of(other):
            pytest.fail("two have it")
    with clusters.Turns(machine.host).of(other):
        assert locks.is_locked(folder / LOCK)


def test_a_test_does_not_wait_for_itself(stage: Stage, machine: Machine, folder: Path) -> None:
    job, own = ck.load(NAME, root=stage.workspace.root, subnet=FIXED), clusters.Turns(machine.host)
    with own.of(job):
        with own.of(job):
            pass
        assert locks.is_locked(folder / LOCK)
    assert not locks.is_locked(folder / LOCK)


def test_other_subnets_are_free(stage: Stage, machine: Machine, folder: Path) -> None:
    with clusters.Turns(machine.host).of(ck.load(NAME, root=stage.workspace.root)):
        assert not list(folder.glob("cluster-kit-subnet-*"))
