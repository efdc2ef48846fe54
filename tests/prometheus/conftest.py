"""Skips tests that need a Prometheus if there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prometheus.installed import why_none

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if reason := why_none():
        for item in items:
            if HERE in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def threads_end_with_their_test() -> None:
    """Disabled here: one server answers one Prometheus, which keeps its connection, in several
    tests."""
