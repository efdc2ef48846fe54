"""Tests that failed are written down by their own names, so that `make test-failed` finds them."""

from __future__ import annotations

import re

import pytest

GROUP = re.compile(r"@[\w-]+$")
"""What xdist appends to the names of tests that share a process."""


def forget_groups(config: pytest.Config) -> None:
    """Take the names of groups out of pytest's record of what failed."""
    cache = getattr(config, "cache", None)  # none with `-p no:cacheprovider`
    if cache is not None and not hasattr(config, "workerinput"):
        failed = cache.get("cache/lastfailed", {})
        cache.set("cache/lastfailed", {GROUP.sub("", name): True for name in failed})
