"""For all suites: two profiles of Hypothesis, quick and thorough; whose turn it is.

The kit's command, called in the process of a test, ends with SystemExit instead of the process.
`yaml.safe_load` reads with the C library where there is one, ten times as fast.
"""

from __future__ import annotations

import gc
import itertools
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from cluster_kit.util import stdio
from tests import grammars, reports, threads
from tests.alone import turn

gc.disable()  # as long as tests are collected
grammars.later()
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # type: ignore[misc]

settings.register_profile("kit", deadline=None, derandomize=True, max_examples=10)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("kit")


@pytest.fixture(autouse=True)
def the_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "leave", sys.exit)


@pytest.fixture(autouse=True)
def threads_end_with_their_test() -> Iterator[None]:
    """Set up after `the_process_goes_on`, by its name: what a test has patched stays patched until
    its threads have ended."""
    with threads.ended():
        yield


NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As pytest's own, which looks at the folders of all tests before it makes another one: with
    thousands of tests that takes more than most of them."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(NUMBERS)}"
    path.mkdir(mode=0o700)
    return path


def pytest_itemcollected(item: pytest.Item) -> None:
    if "run_task" in _fixtures(item):
        item.add_marker("processes")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with containers first: those without are short, and fill the gaps. `first` comes before
    them all, `alone` last, where the fewest others wait for it. Tests that start programs wait most
    of their time: they are spread evenly among the others, so that each process of pytest has its
    share of them."""
    ranks: dict[pytest.Item, tuple[bool, bool, bool, float]] = {}
    for starts in (True, False):
        group = [item for item in items if ("run_task" in _fixtures(item)) is starts]
        for place, item in enumerate(group):
            alone = item.get_closest_marker("alone") is not None
            engine = item.get_closest_marker("engine") is not None
            later = item.get_closest_marker("first") is None
            spread = (place + 0.5) / len(group) if not engine else 0
            ranks[item] = (alone, later, not engine, spread)
    items.sort(key=ranks.__getitem__)


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reports.forget_groups(session.config)


def pytest_collection_finish() -> None:
    """What is there by now stays: the garbage collector need not look at it after every test, nor
    at what tests make before that is some megabytes."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """A test may have called the kit's command, which takes signals over: programs that later tests
    start would ignore them as well."""
    for number, handler in HANDLERS.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)
