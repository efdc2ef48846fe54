"""Parsing of a line of a progress file, into which any program can write anything."""

from __future__ import annotations

import dataclasses
import math

import pytest

from trainer.contract import events
from trainer.contract.events import Kind, decode


def test_an_event_is_a_value_with_the_fields_of_its_line():
    found = decode("silent", {"of": "worker-1", "last_heard": 7.5, "server": True})
    assert found == events.Silent(of="worker-1", last_heard=7.5, server=True)
    assert decode("ready", {}) == events.Ready()


def test_an_unknown_event_is_the_programs_own_with_the_common_figures():
    found = decode("mine", {"of": "worker-1", "step": 7, "name": "yours"})
    assert found == events.Own(name="mine", step=7)
    assert events.name_of(found) == "mine" and events.name_of(events.Ready()) == "ready"


def test_a_programs_metrics_have_any_keys():
    assert decode("metrics", {"a": 1, "b": [2]}) == events.Metrics({"a": 1, "b": [2]})


def test_lines_without_meaning_are_no_event():
    assert decode("silent", {"last_heard": 7.5}) is None
    assert decode("unanswered", {"of": "ps-0"}) is None


@pytest.mark.parametrize(("name", "key", "values"), [
    ("step", "step", ["7", True, None, math.nan, math.inf, 1e31, [7], {}]),
    ("step", "loss", ["nan", True, 1e31]),
    ("retry", "reason", [7, ["a"], None]),
    ("heard", "seconds", ["1"]),
    ("end", "reason", ["a word of its own", ["stall"], {}]),
    ("end", "tasks", ["worker-1", {"worker-1": 1}]),
    ("end", "after_job", [1, "true"]),
    ("waiting", "of", ["worker", "../x-1", "worker-1\n", 7]),
])  # fmt: skip
def test_a_value_of_another_type_is_absent(name, key, values):
    for value in values:
        found = decode(name, {"of": "worker-1", key: value})
        assert found is None or getattr(found, key) is None, value


def test_a_loss_may_be_infinite_or_nan_and_lists_keep_only_texts():
    assert decode("step", {"loss": math.inf}) == events.Step(loss=math.inf)
    assert decode("end", {"tasks": ["ps-0", 7, "ps-1"]}).tasks == ("ps-0", "ps-1")


def test_a_stricter_check_replaces_the_default_check():
    checks = {**events.CHECKS, Kind.TEXT: lambda value: str(value).upper()}
    assert decode("retry", {"reason": "lost"}, checks) == events.Retry(reason="LOST")


def test_events_are_frozen_and_every_field_has_a_type():
    for name, event in events.EVENTS.items():
        assert event.__name__.lower() == name and (event.__doc__ or "").startswith("Written by ")
        kinds = events.KINDS[event]
        assert {*event.needed} <= {*kinds} and {*kinds.values()} <= {*Kind}
    with pytest.raises(dataclasses.FrozenInstanceError):
        events.Ready().x = 1
