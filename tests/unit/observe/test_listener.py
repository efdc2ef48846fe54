"""The kit does not wait longer for an engine that has reported the whole past."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from cluster_kit.observe.listener import Listener
from cluster_kit.platforms.engine import Action, Engine, Event, Subscription
from cluster_kit.this_host import SystemClock

START = Event(1.0, "start", "ps-0", None)


class Telling:
    """Yields these events, and then nothing for the length of a test."""

    def __init__(self, *events: Event) -> None:
        self._events = events
        self.told = threading.Event()
        self.over = threading.Event()

    def answers(self) -> bool:
        return True

    def events(
        self, cluster: str, since: float, run: str = "", until: Subscription | None = None
    ) -> Iterator[Event]:
        assert until is not None
        until.ends_by(self.over.set)
        yield from self._events
        self.told.set()
        self.over.wait(60)


@pytest.fixture
def joined() -> Iterator[Callable[..., Listener]]:
    """Returns a function that listens to an engine with these events."""
    engines = []

    def listen(*events: Event) -> Listener:
        engines.append(engine := Telling(*events))
        listener = Listener(SystemClock(), cast(Engine, engine), "demo", 0.0, joins=True)
        assert engine.told.wait(30)
        return listener

    yield listen
    for engine in engines:
        engine.over.set()


def test_listening_stops_when_the_past_is_complete(joined: Callable[..., Listener]) -> None:
    listener = joined(START, Event(2.0, Action.ALL_TOLD, "", None))
    assert listener.has_repeated and listener.is_behind
    assert listener.drain() == [START]


def test_an_engine_that_does_not_say_so_gets_time_to_repeat(
    joined: Callable[..., Listener],
) -> None:
    listener = joined(START)
    assert not listener.has_repeated
    assert listener.drain() == [START]


def test_a_listener_that_is_closed_ends_its_thread(joined: Callable[..., Listener]) -> None:
    before = set(threading.enumerate())
    listener = joined(START)
    (thread,) = set(threading.enumerate()) - before
    assert thread.is_alive()
    listener.close()
    listener.close()
    thread.join(30)
    assert not thread.is_alive()


def test_a_stream_that_begins_after_the_end_ends_at_once() -> None:
    closed: list[str] = []
    subscription = Subscription()
    subscription.end()
    subscription.ends_by(lambda: closed.append("closed"))
    assert closed == ["closed"] and subscription.wait(0)
