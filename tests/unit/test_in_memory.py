"""Tests in forks write to memory only where there is room, and nobody chose another place."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import in_memory


@pytest.mark.parametrize(
    ("free", "chosen", "there"), [(3 << 30, "", True), (1 << 20, "", False), (3 << 30, "/x", False)]
)
def test_memory_is_used_where_there_is_room(
    free: int, chosen: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    if chosen:
        monkeypatch.setenv("TMPDIR", chosen)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert in_memory.place(tmp_path) == (tmp_path if there else None)


def test_a_machine_without_such_a_folder_uses_its_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert in_memory.place(tmp_path / "none") is None
