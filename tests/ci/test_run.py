""".ci/run names at its end the tests that passed only in a second attempt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.make import ROOT

MAKE = """#!/bin/sh
echo "make $1"
case " $FAILS " in *" $1 "*)
  mkdir -p .pytest_cache/v/cache && cp failed.json .pytest_cache/v/cache/lastfailed
  exit 2
esac
"""
FLAKY = ["tests/unit/test_a.py::test_one[a b]", "tests/e2e/test_b.py::test_two"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Returns a directory with .ci/run, and a `make` whose targets in FAILS fail."""
    for folder in (".ci", ".venv/bin", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / "bin" / "make").write_text(MAKE)
    (tmp_path / "bin" / "make").chmod(0o755)
    (tmp_path / "failed.json").write_text(json.dumps(dict.fromkeys(FLAKY, True)))
    return tmp_path


def run(clone: Path, fails: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PATH": f"{clone / 'bin'}:{os.environ['PATH']}", "FAILS": fails}
    command = [str(clone / ".ci" / "run")]
    return subprocess.run(
        command, env=given, cwd=clone, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_test_that_passed_in_the_second_attempt_is_printed_at_the_end(clone: Path) -> None:
    done = run(clone, "test")
    assert done.returncode == 0, done.stderr
    output = done.stdout.splitlines()
    assert [line for line in output if line.startswith("make ")][-2:] == [
        "make test",
        "make test-failed",
    ]
    assert output[-3].startswith("2 passed only when run again")
    assert [line.strip() for line in output[-2:]] == FLAKY


def test_a_second_failure_is_a_failure(clone: Path) -> None:
    assert run(clone, "test test-failed").returncode != 0


def test_passed_tests_are_not_mentioned(clone: Path) -> None:
    done = run(clone, "")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["make check", "make test-more", "make test"]
