"""Ends the leaders and followers of a test, which are threads of this process, with the test."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from followers import Over, end

from trainer.agent.beacon import client
from trainer.agent.beacon.client import BeaconClient
from trainer.agent.beacon.server import BeaconServer


def _noted(run: Callable[..., None], made: list) -> Callable[..., None]:
    """Wrap a function that a thread of a leader or a follower runs, and record it until it ends."""

    @functools.wraps(run)
    def noted(self: object, *arguments: object) -> None:
        made.append(self)
        try:
            run(self, *arguments)
        except Over:
            return

    return noted


@pytest.fixture(scope="module", autouse=True)
def leaders() -> Iterator[list[BeaconServer]]:
    """Returns the leaders whose thread has started."""
    found: list[BeaconServer] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BeaconServer, "_serve", _noted(BeaconServer._serve, found))
        patch.setattr(BeaconClient, "_follow", _noted(BeaconClient._follow, []))
        yield found


@pytest.fixture(autouse=True)
def beacons_end(leaders: list[BeaconServer], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End all leaders and followers with the test. A follower reconnects again and again, also to a
    later test's leader.

    It ends when it sleeps, which it does when its connection is lost.
    """
    over, there = threading.Event(), len(leaders)

    def sleep(seconds: float) -> None:
        if over.wait(seconds):
            raise Over

    patient = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)
    monkeypatch.setattr(client, "time", patient)
    yield
    over.set()
    for leader in leaders[there:]:
        end(leader)
