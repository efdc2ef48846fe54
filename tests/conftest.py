"""For all suites: two profiles of Hypothesis, quick and thorough; whose turn it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.alone import turn

settings.register_profile("kit", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("kit")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with containers first: those without are short, and fill the gaps. `alone` comes last,
    where the fewest others wait for it."""
    items.sort(
        key=lambda item: (
            item.get_closest_marker("alone") is not None,
            item.get_closest_marker("engine") is None,
        )
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)
