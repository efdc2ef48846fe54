"""What the reader prints in a pod is written here, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

from cluster_kit.backends.kubernetes.inside.reader import CHUNK, scan
from cluster_kit.engine.kubernetes.mirror import Mirror


def lines(found: object) -> str:
    return "".join(f"2026-11-22T10:00:00Z {json.dumps(one)}\n" for one in found)  # type: ignore[attr-defined]


def test_files_grow_here_as_they_grow_there(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    file = there / "progress" / "chief-0.jsonl"
    file.parent.mkdir(parents=True)
    (there / "model").mkdir()
    (there / "model" / "large").write_bytes(b"x")
    known: dict[str, tuple[int, int]] = {}
    file.write_bytes(bytes(range(256)) * 50)
    (file.parent / "chief-0.beat").touch()
    mirror = Mirror(here)
    first = list(scan(known, str(there)))
    assert max(len(json.dumps(one)) for one in first) < 16 * 1024, "a log's line is cut there"
    assert len(first) == 1 + -(-file.stat().st_size // CHUNK)
    mirror.take(lines(first))
    with file.open("ab") as more:
        more.write(b"more\n")
    second = list(scan(known, str(there)))
    mirror.take(lines([*second, *first, *second]))
    assert (here / "progress" / "chief-0.jsonl").read_bytes() == file.read_bytes()
    assert (here / "progress" / "chief-0.beat").exists()
    assert not (here / "model").exists()
    assert list(scan(known, str(there))) == []
    mirror.take(lines([{"scan": 7}]))
    assert (mirror.scans, mirror.last) == (7, "2026-11-22T10:00:00Z")


def test_a_line_that_would_write_elsewhere_is_left_out(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "out")
    for path in ("/etc/x", "../x", "progress/../../x", "model/x", ""):
        mirror.take(lines([{"path": path, "at": 0, "data": "eA=="}]))
    mirror.take("not JSON\n2026-11-22T10:00:00Z {}\n\n")
    assert not (tmp_path / "out").exists()
