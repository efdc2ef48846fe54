"""Skips tests that need Slurm's daemons if these cannot be started, and tests that take minutes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slurm.nodes import why_not

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    reason = why_not()
    if "slow" not in config.getoption("markexpr"):
        reason = "takes minutes; `make test-slow` runs it"
    for item in items:
        if HERE in item.path.parents and reason:
            item.add_marker(pytest.mark.skip(reason=reason))
