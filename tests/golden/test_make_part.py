"""cluster-kit.mk in a user's Makefile: every variable reaches the command, and nothing else
changes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from cluster_kit.manifest.command_line import OVERRIDES
from cluster_kit.project.starter import make_part
from cluster_kit.util.paths import CALLED_BY
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


def test_the_makefiles_own_default_target_is_unchanged(project: Path) -> None:
    assert words(project) == ["echo", "mine"]


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ((), ["up", "demo"]),
        (("CLUSTER=a b.toml", "N_WORKERS=3", "N_PS=0"),
         ["up", "a b.toml", "--workers=3", "--ps=0"]),
        (("ARGS=--name it's $$HOME", "PROGRAM=t.py", "DATA=~/x", "GPUS=auto"),
         ["up", "demo", "--program=t.py", "--args=--name it's $HOME", "--data=~/x", "--gpus=auto"]),
        (("ARGS=--a 1\n--b",), ["up", "demo", "--args=--a 1 --b"]),
        (("KEEP=1", "RESUME=1"), ["up", "demo", "--keep", "--resume"]),
        (("KEEP=0", "RESUME=no", "TF1=false"), ["up", "demo"]),
        (("KEEP=failed",), ["up", "demo", "--keep=failed"]),
        (("N_CHIEF=0", "STYLE=all-tasks", "NAME=two", "TF1=1", 'SET=tensorflow="2.15" port=3333'),
         ["up", "demo", "--chief=0", "--style=all-tasks", "--name=two", "--tf1",
          '--set=tensorflow="2.15"', "--set=port=3333"]),
    ],
)  # fmt: skip
def test_variables_are_options(given: tuple[str, ...], called: list[str], project: Path) -> None:
    assert words(project, "cluster", *given) == ["cluster-kit", *called]


def test_a_misspelled_count_is_refused_but_the_makefiles_own_variables_are_not(
    project: Path,
) -> None:
    made = ("make", "--dry-run", "cluster", "N_WORKER=3")
    done = subprocess.run(made, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no such variable: N_WORKER; there are: N_CHIEF N_WORKERS N_PS" in done.stderr
    assert words(project, "cluster", "VERSION=3") == ["cluster-kit", "up", "demo"]
    assert words(project, "mine", "N_WORKER=3") == ["echo", "mine"]


def test_every_variable_in_messages_exists(project: Path) -> None:
    for override in OVERRIDES:
        value = "1" if override.kind == "switch" else "x"
        assert any(
            word.startswith((f"{override.option}", f"--{override.key}"))
            for word in words(project, "cluster", f"{override.variable}={value}")
        ), override


def test_the_kit_knows_that_make_calls_it_and_uses_no_name_of_the_environment(
    project: Path,
) -> None:
    (project / "cluster-kit").write_text(f'#!/bin/sh\necho "${CALLED_BY}" "$@"\n')
    (project / "cluster-kit").chmod(0o755)
    made = ("make", "--no-print-directory", "cluster", "CLUSTER_KIT=./cluster-kit")
    environment = {**os.environ, "NAME": "DESKTOP-7"}
    done = subprocess.run(
        made, cwd=project, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["make", "up", "demo"]


def test_the_other_targets(project: Path) -> None:
    assert words(project, "cluster-status") == ["cluster-kit", "status"]
    assert words(project, "cluster-logs", "CLUSTER=two") == ["cluster-kit", "logs", "two"]
    assert words(project, "cluster-down") == ["cluster-kit", "down", "demo"]
