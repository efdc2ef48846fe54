"""Locks between processes: one holder at a time, and nothing left behind."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from cluster_kit.util import locks
from cluster_kit.util.locks import Locked, is_locked, lock


def test_one_holds_it_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with lock(path, "process 1"):
        assert is_locked(path)
        with pytest.raises(Locked, match="process 1"), lock(path, "process 2"):
            pass
        assert is_locked(path)
    assert not is_locked(path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_has_left_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.write_text("process 1, which says much of itself\n")
    with lock(path, "process 2"):
        assert path.read_text() == "process 2\n"


def test_a_file_that_its_holder_removes_meanwhile_is_not_locked_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, taken = tmp_path / "a.lock", []
    flock = fcntl.flock

    def slow(file: int, how: int) -> None:
        if not taken:
            taken.append(path.stat().st_ino)
            path.unlink()
        flock(file, how)

    monkeypatch.setattr(locks.fcntl, "flock", slow)
    with lock(path, "process 2"), path.open() as now:
        assert os.fstat(now.fileno()).st_nlink == 1
        assert is_locked(path)


def test_of_many_at_once_one_at_a_time_holds_it(tmp_path: Path) -> None:
    path, inside, most, tries = tmp_path / "a.lock", [0], [0], [0]

    def take() -> None:
        for _ in range(200):
            try:
                with lock(path, "me"):
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                    tries[0] += 1
                    inside[0] -= 1
            except Locked:
                continue

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == [1]
    assert tries[0] > 0
    assert not path.exists()
