"""The process that exhausts a container's memory: which process it lets the kernel kill, and when
it stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.drill.inside import exhaust_memory


@pytest.fixture
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "stat").write_text("7 (python3 (x)) S 1 7")
    monkeypatch.setattr(exhaust_memory, "largest", lambda: tmp_path)
    monkeypatch.setattr(exhaust_memory, "become_owner", lambda _process: None)
    return tmp_path


def test_the_kernel_is_told_to_kill_the_largest_process(
    victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([True, True, False])
    monkeypatch.setattr(exhaust_memory, "is_alive", lambda _process: next(answers))
    assert exhaust_memory.exhaust(2 << 20) == ""
    assert (victim / "oom_score_adj").read_text() == "1000"


class Clock:
    """A clock on which only sleeping takes time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_it_gives_up(victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exhaust_memory, "time", Clock())
    output = exhaust_memory.exhaust(3 << 20)
    assert output == "3 MiB were taken within 10 s, and nothing happened"


def test_a_process_that_only_waits_for_its_parent_counts_as_dead(victim: Path) -> None:
    assert exhaust_memory.is_alive(victim)
    (victim / "stat").write_text("7 (python3 (x)) Z 1 7")
    assert not exhaust_memory.is_alive(victim)
    assert not exhaust_memory.is_alive(victim / "gone")


def test_the_size_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "statm").write_text("900 55 3 1 0 7 0")
    assert exhaust_memory.resident(tmp_path) == 55
    assert exhaust_memory.resident(tmp_path / "gone") == 0
