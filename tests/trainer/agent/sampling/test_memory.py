"""Memory in use: by the control group of either version, else by the processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainer.agent import usage, usage_recorder

VERSION_1 = {
    "memory/memory.usage_in_bytes": "9000000\n",
    "memory/memory.stat": "cache 86016\ntotal_inactive_file 2000000\n",
}
VERSION_2 = {"memory.current": "9000000\n", "memory.stat": "anon 1\ninactive_file 3000000\n"}


def mounted(at: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (at / name).parent.mkdir(exist_ok=True)
        (at / name).write_text(text)
    return at


@pytest.mark.parametrize(
    ("files", "expected"),
    [(VERSION_1, 7000000), (VERSION_2, 6000000), ({}, None), ({"memory.current": "max"}, None)],
)
def test_file_pages_that_can_be_dropped_are_not_in_use(tmp_path, files, expected):
    assert usage.control_group_memory(mounted(tmp_path, files)) == expected


def test_without_a_control_group_the_memory_of_processes_counts(monkeypatch):
    monkeypatch.setattr(usage, "control_group_memory", lambda: None)
    assert (
        usage_recorder.memory_in_use() >= usage_recorder.memory_of_processes(Path("/proc")) // 2 > 0
    )


def test_shared_pages_count_for_no_process(tmp_path):
    for process, text in {"1": "900 50 20 1 0 9 0", "23": "10 10 10 0 0 0 0", "x": "9"}.items():
        (tmp_path / process).mkdir()
        (tmp_path / process / "statm").write_text(text)
    assert usage_recorder.memory_of_processes(tmp_path) == 30 * os.sysconf("SC_PAGE_SIZE")
