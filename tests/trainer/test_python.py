"""The trainer runs on Python 3.9, except for detection: users' images have such Pythons."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import trainer

PACKAGE = Path(trainer.__file__).parent
FILES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if "detection" not in path.relative_to(PACKAGE).parts
]
IMPORT_ALL = """
import importlib, pkgutil, sys
sys.dont_write_bytecode = True
import trainer
for module in pkgutil.walk_packages(trainer.__path__, "trainer."):
    if "__main__" in module.name or "detection" in module.name or "on_path" in module.name:
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        assert error.name in ("tensorflow", "numpy"), (module.name, error)
print(sys.version_info[:2])
"""


def test_the_syntax_is_python_3_9(subtests: pytest.Subtests) -> None:
    for path in FILES:
        with subtests.test(path=path):
            tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
            newer = [
                node.lineno
                for node in ast.walk(tree)
                if isinstance(node, ast.Match)
                or (isinstance(node, ast.keyword) and node.arg == "strict")
                or (
                    isinstance(node, ast.alias)
                    and node.name in ("pairwise", "tomllib", "Self", "StrEnum")
                )
                or (isinstance(node, ast.keyword) and node.arg in ("slots", "kw_only"))
            ]
            assert not newer, f"lines {newer} need a newer Python"


@pytest.mark.processes
def test_python_3_9_can_import_it() -> None:
    of_pyenv = sorted(Path.home().glob(".pyenv/versions/3.9.*/bin/python3.9"))
    found = str(of_pyenv[0]) if of_pyenv else shutil.which("python3.9")
    # With another HOME, pyenv's `python3.9` is on PATH and starts nothing.
    if not found or subprocess.run([found, "-V"], capture_output=True, check=False).returncode:
        pytest.skip("no Python 3.9 is on this machine")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [found, "-c", IMPORT_ALL], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "(3, 9)", done.stderr
