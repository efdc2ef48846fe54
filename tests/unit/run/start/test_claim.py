"""Two commands for one cluster name at the same time, in one workspace or in two."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from cluster_kit import labels
from cluster_kit.errors import EngineError, HostError
from cluster_kit.run import cluster_lock as claims
from cluster_kit.run.cluster_lock import Watched, claim, is_claimed
from cluster_kit.run.run_directory import read_record
from cluster_kit.workspace import Workspace
from tests.fakes.clock import Clock
from tests.fakes.engine import FakeEngine
from tests.fakes.hosts import Machine
from tests.fakes.stage import MANIFEST, NAME, Stage


@pytest.fixture
def other(tmp_path: Path) -> Workspace:
    """The workspace of another user on this host, with a manifest of the same name."""
    root = tmp_path / "elsewhere"
    (root / "compose").mkdir(parents=True)
    (root / "compose" / f"{NAME}.toml").write_text(MANIFEST)
    return Workspace(root)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(
    ("asked", "moment"), [("docker", "compose -f"), ("docker", "start ps-0"), ("engine", "stop")]
)
def test_a_second_up_of_a_name_is_refused_and_disturbs_nothing(
    stage: Stage, other: Workspace, asked: str, moment: str, elsewhere: bool
) -> None:
    """Both while the first one starts its containers, and while it ends them."""
    refused: list[HostError] = []
    here = stage.workspace

    def second(name: str) -> None:
        if name == moment and not refused:
            stage.workspace = other if elsewhere else here
            with pytest.raises(Watched) as error:
                stage.up()
            stage.workspace = here
            refused.append(error.value)

    getattr(stage, asked).on_call = second
    assert stage.up().success
    assert f"demo is being started or watched by process {os.getpid()}" in refused[0].message
    assert f"its runs are in {here.runs(NAME)}" in refused[0].message
    assert "--name OTHER" in refused[0].hint
    assert len(stage.docker.ups) == 1
    assert len(list(here.runs(NAME).glob("2*"))) == 1
    assert not other.runs(NAME).exists()
    assert stage.is_clean()


def test_a_name_is_free_again_after_its_run(stage: Stage, other: Workspace) -> None:
    assert stage.up().success
    stage.workspace = other
    assert stage.up().success


def test_a_cluster_of_another_workspace_is_named_with_its_run(
    stage: Stage, other: Workspace
) -> None:
    stage.detach()
    run = stage.directory.path
    stage.workspace = other
    with pytest.raises(HostError, match="the cluster demo is already up") as told:
        stage.up()
    assert str(run) in told.value.message
    assert "cluster-kit attach demo" in told.value.hint
    assert len(stage.engine.boxes) == 5


def test_a_run_does_not_touch_the_containers_of_another_host(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, other: Workspace
) -> None:
    """Several hosts use one engine; their locks are not visible here."""
    stage.detach()
    run, here = stage.directory.path, stage.workspace
    stage.workspace = other
    monkeypatch.setattr("cluster_kit.run.start.make_room", lambda *_: None)
    with pytest.raises(EngineError, match="another run") as told:
        stage.up()
    assert str(run) in told.value.message
    assert len(stage.engine.boxes) == 5
    assert all(box.state == "running" for box in stage.engine.boxes.values())
    stage.workspace = here
    assert stage.attach().success


def test_each_run_has_a_unique_id_that_its_containers_have(stage: Stage) -> None:
    stage.detach()
    record = read_record(stage.directory)
    assert record is not None
    assert {box.mark[labels.RUN] for box in stage.engine.boxes.values()} == {record.id}
    assert stage.attach().id == record.id
    assert stage.saved()["id"] == record.id
    assert stage.up(resume=True).id not in ("", record.id)


def test_a_name_is_reserved_for_all_users_of_one_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: Machine
) -> None:
    machine.locks_in(tmp_path)
    engine, another = FakeEngine(Clock()), FakeEngine(Clock())
    monkeypatch.setattr(another, "identity", lambda: "0THER")
    assert not is_claimed(machine.host, engine, "demo")
    with claim(machine.host, engine, "demo", tmp_path):
        assert is_claimed(machine.host, engine, "demo")
        assert not is_claimed(machine.host, another, "demo")
        with (
            claim(machine.host, another, "demo", tmp_path),
            claim(machine.host, engine, "demo-2", tmp_path),
        ):
            pass
        assert list(tmp_path.glob("*F4KE0001-demo.lock"))
    assert not is_claimed(machine.host, engine, "demo")
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_cannot_be_made_is_named(tmp_path: Path, machine: Machine) -> None:
    machine.locks_in(tmp_path / "missing")
    with (
        pytest.raises(HostError, match=r"missing/cluster-kit-F4KE0001-demo\.lock cannot be made"),
        claim(machine.host, FakeEngine(Clock()), "demo", tmp_path),
    ):
        pass


def test_only_a_user_of_the_engine_can_reserve_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = pwd.getpwnam("nobody")
    engine = tmp_path / "docker.sock"
    engine.touch()
    engine.chmod(0o660)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{engine}")
    assert claims.may_use_engine(0) and not claims.may_use_engine(nobody.pw_uid)
    assert not claims.may_use_engine(4_000_000_000)
    monkeypatch.setattr(claims.os, "getgrouplist", lambda *_: [engine.stat().st_gid])
    assert claims.may_use_engine(nobody.pw_uid)
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2376")
    assert not claims.may_use_engine(nobody.pw_uid) and claims.may_use_engine(0)
