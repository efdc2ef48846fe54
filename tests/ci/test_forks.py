"""Tests in processes that are forked when all are collected: `make test-unit`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.forks import AT_ONCE, shares
from tests.make import ROOT

pytestmark = pytest.mark.processes
CONFTEST = """
from tests import forks
pytest_addoption = forks.add_option
def pytest_runtestloop(session): return forks.run_forked(session)
"""
TESTS = """
import os, warnings
import pytest
HERE = os.getpid()
print("collected", HERE)
@pytest.mark.parametrize("number", range(20))
def test_well(number, tmp_path, capfd):
    assert os.getpid() != HERE
    assert "fork" in str(tmp_path)
    print(number)
    assert capfd.readouterr().out == f"{number}\\n"
def test_badly():
    print("what it said")
    assert HERE == "nobody"
def test_skipped(): pytest.skip("no reason")
def test_warned(): warnings.warn("of something")
@pytest.fixture
def broken():
    yield
    raise OSError("left open")
def test_that_cleans_up_badly(broken): pass
"""
DIES = "import os\ndef test_well(): pass\ndef test_that_dies(): os._exit(3)\n"


def run(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    """Exit code and output of pytest in such a folder."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(text)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder), "-rs"),
            *("-p", "no:cacheprovider", *arguments, "test_it.py"),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_all_run_once_and_are_told_of_as_in_one_process(tmp_path: Path) -> None:
    code, said = run(tmp_path, TESTS, "--forks=3")
    assert code == 1
    assert "1 failed, 22 passed, 1 skipped, 1 warning, 1 error in " in said, said
    for told in (
        "what it said",
        "AssertionError",
        "test_it.py:15: no reason",
        "UserWarning: of something",
        "OSError: left open",
    ):
        assert told in said


def test_one_that_ends_its_process_is_named(tmp_path: Path) -> None:
    code, said = run(tmp_path, DIES, "--forks=2")
    assert code == 1
    assert "ended with code 3 while it ran test_it.py::test_that_dies" in said


def test_no_more_run_after_as_many_failures_as_were_asked_for(tmp_path: Path) -> None:
    text = "import time\ndef test_fails(): assert False\n"
    text += "".join(f"def test_{n}(): time.sleep(0.5)\n" for n in range(30))
    code, said = run(tmp_path, text, "--forks=2", "-x")
    assert code == 1
    assert "stopping after 1 failures" in said and "30 passed" not in said


class Item:
    def __init__(self, nodeid: str, group: str = "") -> None:
        self.nodeid, self.path = nodeid, nodeid.partition("::")[0]
        self._marks = {"xdist_group": pytest.mark.xdist_group(group).mark} if group else {}

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return self._marks.get(name)


def test_a_file_or_group_is_one_share_and_the_longest_begins() -> None:
    one_more = [Item(f"e.py::{n}") for n in range(AT_ONCE + 1)]
    items: Any = [Item("a.py::1"), Item("b.py::1"), Item("a.py::2"), Item("c.py::1", "g"),
                  Item("d.py::1", "g"), *one_more]  # fmt: skip
    of_e = [list(range(5, 5 + AT_ONCE)), [5 + AT_ONCE]]
    assert shares(items, {}) == [[0, 2], [1], [3, 4], *of_e]
    assert shares(items, {"d.py": 2.0, "b.py": 3.0}) == [[1], [3, 4], [0, 2], *of_e]
