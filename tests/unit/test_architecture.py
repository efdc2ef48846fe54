"""What import-linter cannot say of the code's shape (see pyproject.toml for what it holds)."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.make import ROOT
from tests.sources import nodes_of, statements_of, text_of

HOST = sorted((ROOT / "cluster_kit").rglob("*.py"))
IMAGE = sorted((ROOT / "images" / "trainer").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
STARTS_PROGRAMS = ROOT / "cluster_kit" / "util" / "process.py"

LONGEST_FILE, LONGEST_FUNCTION, MEDIAN_FILE = 220, 50, 80
"""Lines. A file is one thought; what is longer is two."""


def lines_of(path: Path) -> int:
    return len(text_of(path).splitlines())


def long_files(files: list[Path]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}: {lines_of(path)} lines"
        for path in files
        if lines_of(path) > LONGEST_FILE
    ]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """`file:line name`, and its length in lines, of every function."""
    for node in statements_of(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", length


def test_there_is_something_to_look_at() -> None:
    assert len(HOST) > 80
    assert len(IMAGE) > 80
    assert len(TESTS) > 300
    assert STARTS_PROGRAMS in HOST


@pytest.mark.parametrize("files", [HOST, IMAGE], ids=["host", "image"])
def test_files_and_functions_are_short(files: list[Path]) -> None:
    long = long_files(files)
    long += [
        f"{place}: {length} lines"
        for path in files
        if lines_of(path) > LONGEST_FUNCTION
        for place, length in functions(path)
        if length > LONGEST_FUNCTION
    ]
    assert not long, "split by meaning, not by length"


def test_files_of_tests_are_short() -> None:
    """By their text alone: making the trees of all of them takes a second."""
    assert not long_files(TESTS), "a file for each subject; what they share is a module beside them"


@pytest.mark.parametrize("files", [HOST, IMAGE], ids=["host", "image"])
def test_most_files_are_read_at_one_glance(files: list[Path]) -> None:
    assert statistics.median(lines_of(path) for path in files) <= MEDIAN_FILE


def test_only_util_process_starts_programs() -> None:
    """Others may name `subprocess.TimeoutExpired`, which `run` raises, and nothing else of it."""
    starts = []
    for path in HOST:
        if path == STARTS_PROGRAMS or not re.search(r"\bsubprocess\b|\bos\s*\.", text_of(path)):
            continue
        for node in nodes_of(path):
            if isinstance(node, ast.ImportFrom) and node.module == "subprocess":
                starts.append(f"{path.relative_to(ROOT)}:{node.lineno} imports from subprocess")
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used = f"{node.value.id}.{node.attr}"
                harmless = used == "subprocess.TimeoutExpired"
                if (used.startswith("subprocess.") and not harmless) or used in (
                    "os.system",
                    "os.popen",
                    "os.fork",
                    "os.execv",
                ):
                    starts.append(f"{path.relative_to(ROOT)}:{node.lineno} uses {used}")
    assert not starts
