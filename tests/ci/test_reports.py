"""The record of failed tests, by which `make test-failed` finds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.make import ROOT

pytestmark = pytest.mark.processes
CONFTEST = """
import pytest
from tests import reports
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session): reports.forget_groups(session.config)
"""
TESTS = """
import os, pytest
@pytest.mark.xdist_group("some-group")
@pytest.mark.parametrize("word", ["a@b"])
def test_fails(word): assert "AGAIN" in os.environ
def test_well(): pass
"""


def run(folder: Path, *words: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder), "-p", "xdist",
         *words, "test_it.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
             **variables},
        capture_output=True,
        text=True,
        timeout=300,  # a guard only: a busy disk has held it up for a minute
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_a_failed_test_in_a_group_is_found_again_alone(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    assert "1 failed, 1 passed" in run(tmp_path, "--numprocesses=2", "--dist=loadgroup")
    again = run(tmp_path, "--last-failed", "--last-failed-no-failures=none", AGAIN="1")
    assert "1 passed" in again and "2 passed" not in again, again


def test_a_run_without_a_record_ends_normally(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    output = run(tmp_path, "-p", "no:cacheprovider", AGAIN="1")
    assert "2 passed" in output and "Traceback" not in output, output
