"""`make clean` removes only files that a command creates again in seconds, and no results."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cluster_kit.platform_table import PLATFORMS
from tests.make import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

MADE = (
    *(f"compose/{name}/{file}" for name, row in PLATFORMS.items() for file in row.files),
    "compose/mine/.gitignore",
    "build/browser/x",
    "cluster_kit/plan/__pycache__/x.pyc",
    ".ruff_cache/x",
    "compose/old/compose.yaml",
)
KEPT = (
    "compose/mine/output/model/weights",
    "compose/mine/compose.override.yaml",
    "compose/drills/mine.toml",
    "compose/mine.toml",
    "portable/mine/output/model",
    "runs/mine/1/outcome.json",
    *(f"build/{name}/figures.json" for name in ("bench", "compare", "drill", "speedup")),
)


def clean(folder: Path) -> None:
    command = ["make", "--no-print-directory", "clean"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_results_and_files_of_the_user_stay(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (*MADE, *KEPT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "compose" / "old" / "output").mkdir()
    assets = tmp_path / "compose/mine/output/model/assets"  # part of a SavedModel, mostly empty
    assets.mkdir()
    for _ in range(2):
        clean(tmp_path)
        assert [name for name in KEPT if not (tmp_path / name).is_file()] == []
        assert [name for name in MADE if (tmp_path / name).exists()] == []
    assert assets.is_dir() and not (tmp_path / "compose" / "old").exists()


def test_nothing_to_remove_is_no_error(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    clean(tmp_path)
