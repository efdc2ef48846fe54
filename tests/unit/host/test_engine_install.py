"""What is left of an engine that was killed does not keep the next one from starting."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster_kit.host.engine_install import forget_dead_daemon


@pytest.mark.parametrize("left", ["mine", "999999999", "", "x"])
def test_a_pid_file_that_names_no_dockerd_is_forgotten(tmp_path: Path, left: str) -> None:
    pid_file = tmp_path / "docker.pid"
    pid_file.write_text(str(os.getpid()) if left == "mine" else left)
    forget_dead_daemon(pid_file)
    assert not pid_file.exists()


def test_there_need_be_no_pid_file(tmp_path: Path) -> None:
    forget_dead_daemon(tmp_path / "docker.pid")
