"""Waits for a condition, with an upper bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(what: str, look: Callable[[], T | None], timeout_s: float = 60.0) -> T:
    """Call `look` until it returns something; at the bound, fail and name what was awaited."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come within {timeout_s:g} s")
