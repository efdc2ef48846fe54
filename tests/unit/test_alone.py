"""The order of tests: they run in parallel, except for those marked `alone`."""

from __future__ import annotations

import fcntl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests import alone
from tests.alone import turn


@pytest.fixture(autouse=True)
def locks_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "FOLDER", tmp_path)


def test_other_tests_run_in_parallel() -> None:
    both = threading.Barrier(2)

    def block() -> bool:
        with turn(alone=False):
            return both.wait(20) >= 0

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: block(), range(2))) == [True, True]


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_no_other_test_runs_with_one_that_is_alone(first: bool, second: bool) -> None:
    output: SimpleQueue[str] = SimpleQueue()

    def wait() -> None:
        with turn(alone=second):
            output.put("second")

    with turn(alone=first):
        waits = threading.Thread(target=wait)
        waits.start()
        waits.join(0.2)
        output.put("first")
    waits.join(20)
    assert [output.get(timeout=20), output.get(timeout=20)] == ["first", "second"]


def door_is_locked() -> bool:
    with alone._file("door") as door:
        try:
            fcntl.flock(door, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_no_test_overtakes_one_that_waits_to_be_alone() -> None:
    output: SimpleQueue[str] = SimpleQueue()

    def wait(name: str, by_itself: bool) -> None:
        with turn(alone=by_itself):
            output.put(name)

    first = threading.Thread(target=wait, args=("alone", True))
    late = threading.Thread(target=wait, args=("late", False))
    with turn(alone=False):
        first.start()
        until = time.monotonic() + 20
        while not door_is_locked():
            assert time.monotonic() < until
            time.sleep(0.01)
        late.start()
        late.join(0.2)
    for thread in (first, late):
        thread.join(20)
    assert [output.get(timeout=20), output.get(timeout=20)] == ["alone", "late"]


def test_no_test_waits_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "PATIENCE_S", 0.1)
    with turn(alone=True), pytest.raises(TimeoutError, match=r"no turn within 0\.1 s"), turn(False):
        pass
