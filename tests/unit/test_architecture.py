"""What import-linter cannot say of the code's shape (see pyproject.toml for what it holds)."""

from __future__ import annotations

import ast
import re

from tests.make import ROOT
from tests.sources import nodes_of, text_of

HOST = sorted((ROOT / "cluster_kit").rglob("*.py"))
STARTS_PROGRAMS = ROOT / "cluster_kit" / "util" / "process.py"


def test_there_is_something_to_look_at() -> None:
    assert len(HOST) > 80
    assert STARTS_PROGRAMS in HOST


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
