"""A folder of manifests with a program and data next to it."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns a folder `compose`, next to it a program and two data sets, one of them
    incomplete."""
    (tmp_path / "compose").mkdir()
    (tmp_path / "train.py").touch()
    for part in ("Train", "Validate", "Test"):
        (tmp_path / "images" / part).mkdir(parents=True)
    (tmp_path / "half" / "Train").mkdir(parents=True)
    return tmp_path / "compose"
