"""cluster-kit.mk in a Makefile of somebody: every variable reaches the command, no more changes."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from cluster_kit.project.starter import make_part
from cluster_kit.workspace import Workspace

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A Makefile that includes it before its own first target."""
    (tmp_path / "Makefile").write_text("include cluster-kit.mk\nmine:\n\techo mine\n")
    for path, text in make_part("demo", Workspace(tmp_path)).files.items():
        path.write_text(str(text))
    return tmp_path


def words(project: Path, *given: str) -> list[str]:
    made = ("make", "--dry-run", "--no-print-directory", *given)
    done = subprocess.run(made, cwd=project, capture_output=True, text=True, check=True)
    return shlex.split(done.stdout.replace("\\\n", ""))


def test_what_make_alone_makes_stays_as_it_is(project: Path) -> None:
    assert words(project) == ["echo", "mine"]


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ((), ["up", "demo"]),
        (("CLUSTER=a b.toml", "N_WORKERS=3", "N_PS=0"),
         ["up", "a b.toml", "--workers=3", "--ps=0"]),
        (("ARGS=--name it's $$HOME", "PROGRAM=t.py", "DATA=~/x", "GPUS=auto"),
         ["up", "demo", "--program=t.py", "--args=--name it's $HOME", "--data=~/x", "--gpus=auto"]),
        (("KEEP=1", "RESUME=1"), ["up", "demo", "--keep", "--resume"]),
    ],
)  # fmt: skip
def test_variables_are_options(given: tuple[str, ...], called: list[str], project: Path) -> None:
    assert words(project, "cluster", *given) == ["cluster-kit", *called]


def test_the_other_targets(project: Path) -> None:
    assert words(project, "cluster-status") == ["cluster-kit", "status"]
    assert words(project, "cluster-logs", "CLUSTER=two") == ["cluster-kit", "logs", "two"]
    assert words(project, "cluster-down") == ["cluster-kit", "down", "demo"]
