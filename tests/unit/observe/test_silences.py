"""Silences in words, whatever a program has written of them."""

from __future__ import annotations

import pytest

from cluster_kit.observe import heartbeats
from cluster_kit.observe.progress import Entry


def test_how_long_and_since_when() -> None:
    assert "ps-0 has been silent for 12 s" in heartbeats.words(
        heartbeats.entry("ps-0", 1000.0, 12.0)
    )


@pytest.mark.parametrize("odd", ["x", None, True, 10**400, 1e29, float("nan"), -5])
def test_an_odd_time_is_no_error(odd: object) -> None:
    entry = Entry("chief-0", 1000.0, heartbeats.SILENT, {"of": "ps-0", "last_heard": odd})
    assert heartbeats.words(entry).startswith("ps-0 has been silent for ")
