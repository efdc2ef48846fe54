"""What a process of xdist tells the one that prints: as much as somebody reads.

Each test is told in three parts, and what it costs to pass them on is as much as a short test takes
altogether. That setup and teardown went well is nothing to be read.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

NOTICED_S = 0.005
"""Seconds from which `--durations` lists a setup or a teardown."""


def is_told(report: pytest.TestReport) -> bool:
    """Whether the report says more than that something besides the test itself went well."""
    beside = report.when in ("setup", "teardown") and report.passed
    return not beside or report.duration >= NOTICED_S or bool(report.sections)


def tell_less(config: pytest.Config) -> None:
    """Have this process leave out the others; nothing changes without xdist."""
    for one in config.hook.pytest_runtest_logreport.get_hookimpls():
        if type(one.plugin).__name__ == "WorkerInteractor":
            one.function = _only_what_is_told(one.function)  # type: ignore[misc]


def _only_what_is_told(tell: Any) -> Any:
    def pass_on(report: pytest.TestReport) -> None:
        if is_told(report):
            tell(report)

    return pass_on


GROUP = re.compile(r"@[\w-]+$")
"""What xdist appends to the names of tests that share a process."""


def forget_groups(config: pytest.Config) -> None:
    """Write down which tests failed by their own names, so that `make test-failed` finds them."""
    cache = getattr(config, "cache", None)  # none with `-p no:cacheprovider`
    if cache is not None and not hasattr(config, "workerinput"):
        failed = cache.get("cache/lastfailed", {})
        cache.set("cache/lastfailed", {GROUP.sub("", name): True for name in failed})
