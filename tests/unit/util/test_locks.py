"""Locks between processes: one holder at a time, and nothing left behind."""

from __future__ import annotations

import fcntl
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_kit.util import locks
from cluster_kit.util.locks import Locked, is_locked, lock


def test_one_process_holds_a_lock_and_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with lock(path, "process 1"):
        assert is_locked(path)
        with pytest.raises(Locked, match="process 1"), lock(path, "process 2"):
            pass
        assert is_locked(path)
    assert not is_locked(path)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_for_users_who_may_write_into_its_directory(tmp_path: Path) -> None:
    for directory, mode in ((0o700, 0o600), (0o755, 0o600), (0o775, 0o660), (0o1777, 0o666)):
        tmp_path.chmod(directory)
        for mask in (0, 0o077):
            before = os.umask(mask)
            try:
                with lock(tmp_path / "a.lock", "process 1"):
                    assert stat.S_IMODE((tmp_path / "a.lock").stat().st_mode) == mode
            finally:
                os.umask(before)


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.write_text("process 1, which says much of itself\n")
    with lock(path, "process 2"):
        assert path.read_text() == "process 2\n"


def test_a_lock_file_that_its_holder_removes_meanwhile_is_not_used(
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


def test_of_many_processes_one_at_a_time_holds_a_lock(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/null")])
def test_a_lock_that_is_not_a_regular_file_is_refused_at_once(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "a.lock"
    make(path)
    began = time.monotonic()
    assert not is_locked(path)
    with pytest.raises(OSError), lock(path, "process 2"):
        pass
    assert time.monotonic() - began < 10


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The places in which directories of users are searched, below a folder of this test."""
    monkeypatch.setattr(locks, "RUNTIME", tmp_path / "run")
    monkeypatch.setattr(locks, "SHARED", tmp_path / "tmp")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def test_the_users_directory_is_the_first_that_only_this_user_can_use(places: Path) -> None:
    user = str(os.geteuid())
    made = locks.own_directory()
    assert made == places / "tmp" / f"cluster-kit-{user}"
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    (places / "xdg").mkdir(mode=0o700)
    assert locks.own_directory() == places / "xdg"
    (places / "run" / user).mkdir(mode=0o700, parents=True)
    assert locks.own_directory() == places / "run" / user
    (places / "run" / user).chmod(0o755)
    (places / "xdg").chmod(0o770)
    assert locks.own_directory() == made


@pytest.mark.parametrize(
    "take",
    [
        os.mkfifo,
        lambda path: path.mkdir(mode=0o777),
        lambda path: path.symlink_to(path.parent),
        lambda path: path.write_text(""),
    ],
)
def test_a_name_that_another_user_holds_is_not_used(
    places: Path, take: Callable[[Path], None]
) -> None:
    taken = places / "tmp" / f"cluster-kit-{os.geteuid()}"
    taken.parent.mkdir()
    take(taken)
    if taken.is_dir() and not taken.is_symlink():
        taken.chmod(0o777)
    assert locks.own_directory().is_relative_to(places / "home" / ".cache" / "cluster-kit")


def test_a_directory_of_another_user_is_not_used(
    places: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (places / "tmp" / "cluster-kit-4711").mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(locks.os, "geteuid", lambda: 4711)
    with pytest.raises(PermissionError):
        locks.own_directory()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such sockets")
def test_a_name_can_be_held_only_once_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PREFIX", str(tmp_path))
    with locks.between_users("demo", lambda _: False):
        again = locks.between_users("demo", lambda _: False)
        with pytest.raises(Locked, match=f"process {os.getpid()}"), again:
            pass
        with locks.between_users("demo-2", lambda _: False):
            pass
    assert not locks.holder("demo", lambda _: True)
