"""The kit is called in a directory to which other users can write modules and manifests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster_kit.errors import UsageError
from cluster_kit.image.pip_config import PIP, build_secrets
from cluster_kit.run.prepare import check_arguments
from cluster_kit.this_host import this_host
from cluster_kit.workspace import here
from tests.make import cluster

MODULE = "import pathlib; pathlib.Path({mark!r}).touch()\n"


def test_no_module_in_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark, planted = tmp_path / "ran", tmp_path / "planted"
    for name in ("trainer", "pip"):
        (planted / name).mkdir(parents=True)
        (planted / name / "__init__.py").touch()
        (planted / name / "__main__.py").write_text(MODULE.format(mark=str(mark)))
    (planted / "argparse.py").write_text(MODULE.format(mark=str(mark)))
    monkeypatch.chdir(planted)
    with pytest.raises(UsageError, match="--epochs"):
        check_arguments(this_host(), cluster(program="classifier", args=["--epochs", "none"]))
    with build_secrets(this_host()):
        pass
    assert this_host().processes.run([*PIP, "--version"]).output.startswith("pip ")
    assert not mark.exists()


def test_no_manifest_in_a_runs_output_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "runs" / "demo" / "20261122-101500" / "output"
    inner = output / "deep" / "er"
    for folder in (inner, output):
        (folder / "compose").mkdir(parents=True)
    (output.parent / "run.json").touch()
    for folder in (output, inner):
        monkeypatch.chdir(folder)
        with pytest.raises(UsageError, match="in the output of a run") as refused:
            here()
        assert "a directory of your own" in refused.value.hint
    (output.parent / "run.json").unlink()
    assert here().root == inner


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to be two users")
def test_no_manifest_of_another_user_is_read_in_a_public_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "compose").mkdir()
    monkeypatch.chdir(tmp_path)
    os.chown(tmp_path / "compose", 12345, 12345)
    assert here().root == tmp_path, "a team shares a directory"
    tmp_path.chmod(0o1777)
    with pytest.raises(UsageError, match="belongs to #12345, in a directory for all users"):
        here()
    os.chown(tmp_path / "compose", 0, 0)
    assert here().root == tmp_path
