"""What other tasks can put into the output: links, FIFOs, lines that are not events."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainer.agent import atomic, disk_space, progress_file
from trainer.agent.errors import ContractError
from trainer.agent.progress_file import Progress, Reports, last_event, parsed
from trainer.contract.events import Step


@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_only_regular_files_are_read(tmp_path: Path, kind):
    file = tmp_path / "worker-0.jsonl"
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "link":
        file.symlink_to("/etc/passwd")
    else:
        file.mkdir()
    with pytest.raises(OSError):
        atomic.read_untrusted(file, 100)
    assert last_event(file) is None
    other = Reports(tmp_path)
    other._read.clear()
    assert list(other.new()) == []


def test_the_check_for_free_space_follows_no_link_and_leaves_nothing(alone, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "urandom", bytes)
    victim, folder = tmp_path / "victim", tmp_path / "progress"
    victim.write_text("kept")
    folder.mkdir()
    (folder / f".{alone.name}.{bytes(8).hex()}.room").symlink_to(victim)
    (folder / f".{alone.name}.room").symlink_to(victim)
    disk_space.trouble(alone)
    assert victim.read_text() == "kept"
    monkeypatch.undo()
    assert disk_space.trouble(alone) is None
    assert victim.read_text() == "kept"
    assert [file.name for file in folder.iterdir() if not file.is_symlink()] == []


@pytest.mark.parametrize(
    "line",
    [b"[" * 100_000, b'{"a":' * 100_000, b'{"time": NaN}', b'{"time": -Infinity}',
     b'{"a": [1e999]}', b'{"a": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"\0", b"[]", b"7", b"",
     b'{"event": ["step"]}', b"{}"],
)  # fmt: skip
def test_a_line_that_is_not_an_event_is_ignored(line):
    assert parsed(line) is None


def test_a_progress_file_that_is_a_fifo_does_not_block_a_task(tmp_path: Path):
    os.mkfifo(tmp_path / "worker-0.jsonl")
    with pytest.raises(ContractError, match="cannot write"):
        Progress(tmp_path / "worker-0.jsonl")


def test_a_line_without_an_end_is_omitted_and_a_large_file_is_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_file, "MOST_BYTES", 1000)
    reports, file = Reports(tmp_path), tmp_path / "worker-0.jsonl"
    file.write_bytes(b"x" * 5500 + b"\n" + b'{"event": "step"}\n' * 300)
    found = []
    for _ in range(20):
        found += list(reports.new())
    assert found == [("worker-0", Step())] * 300
    assert last_event(file) == Step()
