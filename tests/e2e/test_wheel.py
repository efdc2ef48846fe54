"""The kit outside of its clone: built, installed, and used by a user who cannot write there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from cluster_kit.image.kit_image import image_tag
from cluster_kit.version import __version__
from tests.e2e import stranger
from tests.kit import mine, remove
from tests.make import ROOT

NAME = f"e2e-wheel-{os.getpid()}"
SHORT = "--args=--epochs 1 --steps-per-epoch 5"


def python_for_all(folder: Path) -> str:
    """Returns a Python that the other user may run; this one may be in a private home directory."""
    recent = (  # a copied interpreter of an environment may run, and lead to a private one
        "import os, sys, venv;"
        "sys.exit(sys.version_info < (3, 11) or not os.access(sys._base_executable, os.X_OK))"
    )
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(python).exists() and stranger.may_run(folder, python, "-c", recent):
            return python
    pytest.skip("no Python 3.11 or newer that another user may run")


@pytest.fixture
def installed(elsewhere: Path) -> Path:
    """Yields the command `cluster-kit` of a clean environment, installed from the wheel."""
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    make = ("make", "--no-print-directory", "wheel")
    (ROOT / "dist").mkdir(exist_ok=True)
    (ROOT / "dist" / "cluster_kit-0.0.1-py3-none-any.whl").touch()  # files of an older version
    output = subprocess.run(make, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    (made,) = (line for line in output.splitlines() if line.startswith("dist/"))
    assert [path.name for path in (ROOT / "dist").glob("*.whl")] == [Path(made).name]
    wheel = ROOT / made
    venv = elsewhere / "venv"
    subprocess.run([python_for_all(elsewhere), "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    subprocess.run([*pip, "--python", python, "install", wheel], check=True)
    return venv / "bin" / "cluster-kit"


@pytest.fixture
def project(elsewhere: Path, client: docker.DockerClient) -> Iterator[Path]:
    """Returns an empty directory that belongs to another user."""
    folder = elsewhere / "project"
    folder.mkdir()
    stranger.give(folder)
    yield folder
    remove(client, NAME)


def contents(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in folder.rglob("*")}


@stranger.possible
def test_an_installed_kit_trains_for_a_user_who_cannot_write_to_it(
    installed: Path, project: Path, client: docker.DockerClient
) -> None:
    before = contents(installed.parents[1])

    def kit(*arguments: str) -> subprocess.CompletedProcess[str]:
        return stranger.run(project, installed, *arguments)

    output = kit("--version").stdout
    assert output.startswith(f"cluster-kit {__version__}, ") and "site-packages" in output
    assert f"{image_tag('cpu')}, built\n" in output, "the wheel has other files than the clone"
    done = kit("up", "smoke", "--name", NAME, "--set", "evaluator=0", SHORT)
    assert done.returncode == 0, done.stderr
    outcome = json.loads((project / "runs" / NAME / "latest" / "outcome.json").read_text())
    assert outcome["success"]
    assert mine(client, NAME) == ([], [])
    assert "clusterkit_run_success{" in kit("metrics", NAME).stdout
    assert json.loads(kit("metrics", "--dashboard").stdout)["uid"] == "cluster-kit"
    new = kit("new", "mine")
    assert (new.returncode, (project / "compose" / "mine.toml").is_file()) == (0, True)
    assert "cluster-kit up mine" in new.stdout and "make" not in new.stdout
    assert kit("render", "mine", "--set", f"name={NAME}").returncode == 0
    missing = kit("render", "quikstart")
    assert missing.returncode == 2 and "did you mean `quickstart`?" in missing.stderr
    made = {path.parts[len(project.parts)] for path in project.rglob("*")}
    assert made <= {"runs", "compose", "programs", ".cache"}
    assert contents(installed.parents[1]) == before
