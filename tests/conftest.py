"""Settings for all suites: two profiles of Hypothesis, quick and thorough, and the lock of `alone`
tests.

If a test calls the kit's command in its own process, the command raises SystemExit instead of
ending the process. `yaml.safe_load` uses the C library if it is installed, which is ten times as
fast.
"""

from __future__ import annotations

import functools
import gc
import itertools
import logging
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, settings
from hypothesis.errors import UnsatisfiedAssumption

from cluster_kit.util import debug_log, stdio
from tests import grammars, reports, threads
from tests.alone import turn

gc.disable()  # while tests are collected
os.umask(0o022)  # tests of the modes of files expect it
grammars.later()
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # type: ignore[misc]

# Seconds say nothing about a test while other processes use the machine.
BUSY = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("kit", **BUSY, derandomize=True, max_examples=10)
settings.register_profile("thorough", **BUSY, max_examples=1000)
settings.load_profile("kit")
PROPERTY_S = 18.0
"""`make fuzz` begins no further example of a property after this time: 70 properties in two
processes take at most 11 minutes."""
LEAST_EXAMPLES = 10


def limited(test: Callable[..., Any], until: float, name: str) -> Callable[..., Any]:
    """Returns a property's function that ends the test, as skipped, at `until` (of a monotonic
    clock); not before LEAST_EXAMPLES have passed, and not after a failure, which Hypothesis
    repeats."""
    passed, has_failed = 0, False

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        nonlocal passed, has_failed
        if not has_failed and passed >= LEAST_EXAMPLES and time.monotonic() > until:
            pytest.skip(f"{name}: no time for more than {passed} examples, which passed")
        try:
            test(*arguments, **named)
        except (Exception, pytest.fail.Exception) as error:
            has_failed = has_failed or not isinstance(error, UnsatisfiedAssumption)
            raise
        passed += 1

    return run


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    handle = getattr(pyfuncitem.obj, "hypothesis", None)
    if handle is not None and pyfuncitem.config.getoption("hypothesis_profile") == "thorough":
        until = time.monotonic() + PROPERTY_S
        handle.inner_test = limited(handle.inner_test, until, pyfuncitem.name)


@pytest.fixture(autouse=True)
def the_process_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "leave", sys.exit)


@pytest.fixture(autouse=True)
def threads_end_with_their_test() -> Iterator[None]:
    """Fail a test whose threads outlive it. Named so that it is set up after `the_process_goes_on`:
    patches of a test stay until its threads have ended."""
    with threads.ended():
        yield


NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replaces pytest's own fixture, which lists the folders of all tests before it makes another
    one. With thousands of tests that takes longer than most tests."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    path = tmp_path_factory.getbasetemp() / f"{name}{next(NUMBERS)}"
    path.mkdir(mode=0o700)
    return path


FOLDERS = pytest.StashKey[dict[Path, pytest.Directory]]()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Give each folder one node, whatever the order of the files on the command line.

    pytest 9.1 collects a folder again for each of its files that is named, and makes new nodes of
    the folders in it. The fixtures of their conftest.py, also those for every test, belong to the
    first nodes.
    """
    report = yield
    folders = collector.session.stash.setdefault(FOLDERS, {})
    report.result = [
        folders.setdefault(node.path, node) if isinstance(node, pytest.Directory) else node
        for node in report.result
    ]
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    if "run_task" in _fixtures(item):
        item.add_marker("processes")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests: tests with containers first, since short tests then fill the gaps; `first`
    before all others, and `alone` last, when the fewest tests must wait for it. Tests that start
    programs mostly wait; they are spread evenly, so that each process of pytest gets its share of
    them."""
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
    """Exclude all present objects from garbage collection, which then need not look at them after
    every test. It also runs less often: objects of a test are some megabytes."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Restore what a call of the kit's command sets for its whole process.

    With its signal handlers, programs that later tests start would ignore these signals, too. With
    the log of `--verbose`, which completing such a line by typer starts as well, later tests would
    print it.
    """
    for number, handler in HANDLERS.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
    debug_log.KIT.handlers[:] = LOG_HANDLERS
    debug_log.KIT.setLevel(logging.NOTSET)


HANDLERS = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
LOG_HANDLERS = [*debug_log.KIT.handlers]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with turn(alone=item.get_closest_marker("alone") is not None):
        return (yield)
