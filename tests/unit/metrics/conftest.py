"""A run that has started."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.workspace import RunDirectory
from tests.unit.metrics.runs import begun


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return begun(tmp_path)
