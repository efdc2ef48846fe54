"""A process of xdist tells everything of a test but that its setup and teardown went well."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reports import is_told


@pytest.mark.parametrize(
    ("different", "told"),
    [
        ({"when": "setup"}, False),
        ({"when": "teardown"}, False),
        ({"when": "call"}, True),
        ({"when": "setup", "outcome": "failed"}, True),
        ({"when": "setup", "outcome": "skipped"}, True),
        ({"when": "teardown", "outcome": "failed"}, True),
        ({"when": "setup", "duration": 0.2}, True),
        ({"when": "teardown", "sections": [("Captured stdout teardown", "bye")]}, True),
    ],
)
def test_what_is_told(different: dict[str, Any], told: bool) -> None:
    fields = {"nodeid": "a.py::test", "location": ("a.py", 1, "test"), "keywords": {},
              "outcome": "passed", "longrepr": None, "duration": 0.001, **different}  # fmt: skip
    assert is_told(pytest.TestReport(**fields)) is told
