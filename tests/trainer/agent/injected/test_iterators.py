"""Iterators are deleted in threads, so that a program does not wait long for them."""

from __future__ import annotations

import threading
import time
import types
from collections.abc import Callable

import pytest

from trainer.agent.injected import iterators

PATIENCE_S = 300


class Resource:
    """Something whose deletion waits for `may_end`, and then sets `ended`."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.ended = (threading.Event() for _ in range(3))
        self.thread: int | None = None

    def made(self) -> object:
        events = self

        class Deleted:
            def __del__(self) -> None:
                events.thread = threading.get_ident()
                events.begun.set()
                events.may_end.wait(PATIENCE_S)
                events.ended.set()

        return Deleted()


@pytest.fixture
def resource() -> Resource:
    return Resource()


@pytest.fixture
def used() -> iterators.StillUsed:
    """Its thread never looks: the tests call `look`."""
    used = iterators.StillUsed()
    used.keep = lambda kept: used._kept.__setitem__(id(kept), kept)
    return used


@pytest.fixture
def iterator(used: iterators.StillUsed) -> Callable[..., object]:
    """Return a function that makes an iterator of a resource, here or on a server."""

    def make(resource: object, here: bool | None = True) -> object:
        class Owned:
            def __init__(self, given: object) -> None:
                self._resource = given

            __del__ = iterators.ending("_resource", lambda found: here, used)

        return Owned(resource)

    return make


def test_a_program_waits_for_the_end_of_an_iterator(resource, iterator, monkeypatch):
    monkeypatch.setattr(iterators, "PATIENCE_S", PATIENCE_S)
    resource.may_end.set()
    owned = iterator(resource.made())
    del owned
    assert resource.ended.is_set()
    assert resource.thread != threading.get_ident()


def test_a_program_goes_on_if_an_iterator_does_not_end(resource, iterator, monkeypatch):
    monkeypatch.setattr(iterators, "PATIENCE_S", 0.01)
    owned = iterator(resource.made())
    del owned
    assert not resource.ended.is_set()
    resource.may_end.set()
    assert resource.ended.wait(PATIENCE_S)


def test_a_resource_that_is_used_elsewhere_ends_after_its_last_use(
    resource, iterator, used, monkeypatch
):
    monkeypatch.setattr(iterators, "PATIENCE_S", 0.01)
    elsewhere = [resource.made()]
    owned = iterator(elsewhere[0])
    del owned
    used.look()
    assert not resource.begun.is_set()
    elsewhere.clear()
    assert not resource.begun.is_set()
    used.look()
    assert resource.begun.wait(PATIENCE_S)
    assert not used._kept
    resource.may_end.set()


def test_a_thread_looks_for_the_last_use(resource, monkeypatch):
    monkeypatch.setattr(iterators, "LOOK_S", 0.001)
    resource.may_end.set()
    used = iterators.StillUsed()
    used.keep(resource.made())
    assert resource.ended.wait(PATIENCE_S)


def test_the_thread_does_not_wake_while_nothing_is_kept(monkeypatch):
    used = iterators.StillUsed()
    slept_with: list[bool] = []

    def sleep(_seconds: float) -> None:
        slept_with.append(bool(used._kept))
        time.sleep(0.001)

    monkeypatch.setattr(iterators, "time", types.SimpleNamespace(sleep=sleep))
    for _ in range(3):
        resource = Resource()
        resource.may_end.set()
        used.keep(resource.made())
        assert resource.ended.wait(PATIENCE_S)
    assert slept_with and all(slept_with)


@pytest.mark.parametrize("here", [False, None])
def test_what_is_on_a_server_or_no_eager_tensor_is_deleted_as_before(resource, iterator, here):
    resource.may_end.set()
    owned = iterator(resource.made(), here)
    del owned
    assert resource.thread == threading.get_ident()


@pytest.mark.parametrize(("here", "made_of"), [(False, "untuned"), (True, "data"), (None, "data")])
def test_a_data_set_on_a_server_is_not_tuned(here, made_of, monkeypatch):
    monkeypatch.setattr(iterators, "untuned", lambda dataset: "untuned")

    class Data(str):
        _variant_tensor = "variant"

    made: list[object] = []
    begin = iterators.beginning(
        lambda _self, dataset, devices: made.append((dataset, devices)), lambda found: here
    )
    begin(object(), Data("data"), devices=2)
    assert made == [(made_of, 2)]


def test_a_thread_that_could_not_be_started_is_started_later(monkeypatch):
    def full(*_arguments: object) -> None:
        raise RuntimeError("can't start new thread")

    started = []
    used = iterators.StillUsed()
    monkeypatch.setattr(iterators._thread, "start_new_thread", full)
    with pytest.raises(RuntimeError):
        used.keep(object())
    monkeypatch.setattr(iterators._thread, "start_new_thread", lambda *given: started.append(given))
    used.keep(object())
    assert len(started) == 1
