"""The messages about silent tasks, whatever a program has written about them."""

from __future__ import annotations

import pytest

from cluster_kit.contract.events import Silent
from cluster_kit.observe import heartbeats
from cluster_kit.observe.lives import Life, Lives
from cluster_kit.observe.progress import Entry
from cluster_kit.observe.state import RunState
from cluster_kit.observe.task_view import TaskView
from tests.entries import as_entry


def sentence(entry: Entry) -> str:
    assert isinstance(entry.event, Silent)
    return str(heartbeats.silence(entry.time, entry.event))


def test_a_message_has_the_length_and_the_time() -> None:
    assert "ps-0 has been silent for 12 s" in sentence(heartbeats.entry("ps-0", 1000.0, 12.0))


def test_a_killed_task_is_not_said_to_have_a_living_process() -> None:
    fields = {"of": "ps-0", "last_heard": 979.0, "server": True, "gone": True}
    entry = as_entry("chief-0", 1000.0, "silent", fields)
    assert "has not answered for 21 s (its process has ended;" in sentence(entry)


@pytest.mark.parametrize("odd", ["x", None, True, 10**400, 1e29, float("nan"), -5])
def test_an_invalid_time_is_no_error(odd: object) -> None:
    entry = as_entry("chief-0", 1000.0, "silent", {"of": "ps-0", "last_heard": odd})
    assert sentence(entry).startswith("ps-0 has been silent for ")


@pytest.mark.parametrize(
    ("lives", "told"),
    [
        ((Life(900.0, 1000.5, 137, ooms=(1000.4,)),), "had ended (out of memory)"),
        ((Life(900.0, 1000.5, 139),), "21 s, since its container had ended (exit code 139)"),
        ((Life(900.0, 1000.5, 137), Life(1001.0)), "frozen or cut off"),
        ((Life(900.0, 1022.0, 137), Life(1023.0)), "frozen or cut off"),
    ],
)
def test_only_a_task_whose_container_ran_may_be_frozen(lives: Lives, told: str) -> None:
    tasks = {name: TaskView(name, "ps", "", ()) for name in ("chief-0", "ps-0")}
    entries = (as_entry("chief-0", 1021.0, "silent", {"of": "ps-0", "last_heard": 1000.0}),)
    seen = RunState(tasks, "chief-0", entries=entries, lives={"ps-0": lives})
    assert told in str(heartbeats.all_of(seen)[0])
