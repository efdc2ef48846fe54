"""The artifacts that CI uploads have no link, no FIFO, and no file whose secrets are not masked."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.ci.steps import Runner
from tests.make import ROOT

pytestmark = pytest.mark.processes
KIT = """#!/bin/sh
case "$*" in
  *--values*) printf '%s\\n' "run=$RUN" success=true ;;
  *) echo said ;;
esac
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Returns the directory of a run in which the program left files that must not be uploaded."""
    run = tmp_path / "runs" / "demo" / "20261122-101500"
    (run / "output" / "progress").mkdir(parents=True)
    (run / "outcome.json").write_text("{}")
    (run / "output" / "model.txt").write_text("a result")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "id_rsa").write_text("of the host")
    (run / "output" / "key").symlink_to(tmp_path / "secret" / "id_rsa")
    (run / "output" / "folder").symlink_to(tmp_path / "secret")
    (run / "output" / "progress" / "x.jsonl").symlink_to("../../../../../secret/id_rsa")
    os.mkfifo(run / "output" / "fifo")
    return run


def odd(folder: Path) -> list[Path]:
    """Returns whatever in the folder is neither a file nor a directory."""
    found = [Path(top, name) for top, folders, files in os.walk(folder) for name in folders + files]
    return [path for path in found if path.is_symlink() or not (path.is_file() or path.is_dir())]


def test_github_uploads_no_link(tmp_path: Path, run: Path) -> None:
    kit, folder = tmp_path / "kit", tmp_path / "folder"
    kit.write_text(KIT)
    kit.chmod(0o755)
    folder.mkdir()
    (folder / "words").write_bytes(b"demo\0")
    runner = Runner(tmp_path, tmp_path, {}, {"RUN": str(run)})
    outputs = {"kit": str(kit), "folder": str(folder)}
    inputs = {"working-directory": str(tmp_path), "evidence-name": ""}
    steps = {"kit": {"outputs": outputs}}
    assert runner.some(ROOT, ["Run the cluster"], inputs=inputs, steps=steps), runner.said
    paths = runner.steps[0].outputs["paths"].splitlines()
    assert paths[0] == str(run) and odd(run) == []
    assert {f"!{run}/output/{name}" for name in ("progress", "stacks", "checkpoints")} < {*paths}
    assert (run / "output" / "model.txt").is_file(), "results are kept"
    assert (tmp_path / "secret" / "id_rsa").read_text() == "of the host"


def test_gitlab_uploads_no_link(tmp_path: Path, run: Path) -> None:
    text = (ROOT / "templates" / "ci" / "gitlab.yml.j2").read_text()
    (line,) = (line for line in text.splitlines() if "find runs" in line)
    (command,) = yaml.safe_load(line)
    subprocess.run(["sh", "-ec", command], cwd=tmp_path, check=True, timeout=30)
    assert odd(tmp_path / "runs") == [] and (run / "output" / "model.txt").is_file()
    assert (tmp_path / "secret" / "id_rsa").read_text() == "of the host"
    subprocess.run(["sh", "-ec", command], cwd=run, check=True, timeout=30)
    assert '"**/output/progress/**/*"' in text
