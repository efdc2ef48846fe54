"""What is left of an engine that was killed does not keep the next one from starting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster_kit.errors import HostError
from cluster_kit.host import engine_install
from cluster_kit.host.engine_install import forget_dead_daemon
from cluster_kit.util.process import Completed


@pytest.mark.parametrize("left", ["mine", "999999999", "", "x"])
def test_a_pid_file_that_names_no_dockerd_is_forgotten(tmp_path: Path, left: str) -> None:
    pid_file = tmp_path / "docker.pid"
    pid_file.write_text(str(os.getpid()) if left == "mine" else left)
    forget_dead_daemon(pid_file)
    assert not pid_file.exists()


def test_there_need_be_no_pid_file(tmp_path: Path) -> None:
    forget_dead_daemon(tmp_path / "docker.pid")


def test_a_user_who_may_not_use_the_engine_is_not_offered_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = "permission denied while trying to connect to the Docker daemon socket"
    monkeypatch.setattr(engine_install.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(engine_install, "run", lambda c, **_: Completed(tuple(c), 1, "", words))
    with pytest.raises(HostError, match="this user may not use the Docker engine") as told:
        engine_install.ensure_engine(lambda _: None, lambda _: pytest.fail("it was offered"))
    assert "usermod -aG docker $USER" in told.value.cure
