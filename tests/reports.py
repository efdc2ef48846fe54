"""Records failed tests under their own names, so that `make test-failed` finds them."""

from __future__ import annotations

import re

import pytest

GROUP = re.compile(r"@[\w-]+$")
"""The suffix that xdist appends to the names of tests that share a process."""


def forget_groups(config: pytest.Config) -> None:
    """Remove the names of groups from pytest's record of failed tests."""
    cache = getattr(config, "cache", None)  # there is no record with `-p no:cacheprovider`
    if cache is not None and not hasattr(config, "workerinput"):
        failed = cache.get("cache/lastfailed", {})
        cache.set("cache/lastfailed", {GROUP.sub("", name): True for name in failed})
