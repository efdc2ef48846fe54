"""Silences in words, whatever a program has written of them."""

from __future__ import annotations

import pytest

from cluster_kit.contract.events import Silent
from cluster_kit.observe import heartbeats
from cluster_kit.observe.progress import Entry
from tests.entries import as_entry


def sentence(entry: Entry) -> str:
    assert isinstance(entry.event, Silent)
    return str(heartbeats.silence(entry.time, entry.event))


def test_how_long_and_since_when() -> None:
    assert "ps-0 has been silent for 12 s" in sentence(heartbeats.entry("ps-0", 1000.0, 12.0))


def test_of_a_task_that_was_killed_it_is_not_said_that_its_process_lives() -> None:
    fields = {"of": "ps-0", "last_heard": 979.0, "server": True, "gone": True}
    entry = as_entry("chief-0", 1000.0, "silent", fields)
    assert "has not answered for 21 s (its process has ended;" in sentence(entry)


@pytest.mark.parametrize("odd", ["x", None, True, 10**400, 1e29, float("nan"), -5])
def test_an_odd_time_is_no_error(odd: object) -> None:
    entry = as_entry("chief-0", 1000.0, "silent", {"of": "ps-0", "last_heard": odd})
    assert sentence(entry).startswith("ps-0 has been silent for ")
