"""Lines that the reader prints in a pod are written here, byte for byte."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from cluster_kit.platforms.kubernetes.kubernetes_engine import Mirror
from cluster_kit.platforms.kubernetes.output_reader import AT_ONCE, CHUNK, MOST, scan


def lines(found: object) -> str:
    return "".join(f"2026-11-22T10:00:00Z {json.dumps(one)}\n" for one in found)  # type: ignore[attr-defined]


def test_local_files_grow_like_those_in_the_pod(tmp_path: Path) -> None:
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


def test_a_line_for_another_path_is_left_out(tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "out")
    for path in ("/etc/x", "../x", "progress/../../x", "model/x", ""):
        mirror.take(lines([{"path": path, "at": 0, "data": "eA=="}]))
    for at in (1e300, -1, "x", None, [1]):
        mirror.take(lines([{"path": "progress/x", "at": at, "data": "eA=="}, {"scan": at}, [at]]))
    mirror.take("2026-11-22T10:00:00Z " + "[" * 100_000)
    mirror.take("not JSON\n2026-11-22T10:00:00Z {}\n\n")
    assert not (tmp_path / "out" / "model").exists()
    assert not (tmp_path / "x").exists()


def test_the_reader_follows_no_link_does_not_block_and_reads_a_bounded_part(
    tmp_path: Path,
) -> None:
    progress = tmp_path / "progress"
    (progress / "deep").mkdir(parents=True)
    os.mkfifo(progress / "a.jsonl")
    (progress / "b.jsonl").symlink_to("/etc/passwd")
    with (progress / "c.jsonl").open("wb") as file:
        file.truncate(3 << 30)
    (progress / "d.jsonl").write_text("{}\n")
    known: dict[str, tuple[int, int]] = {}
    read: dict[str, int] = {}
    for _ in range(MOST // AT_ONCE + 2):
        for one in scan(known, str(tmp_path)):
            size = len(base64.b64decode(one["data"]))
            read[one["path"]] = read.get(one["path"], 0) + size
    assert read == {"progress/c.jsonl": MOST, "progress/d.jsonl": 3}
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "progress").symlink_to(progress)
    assert list(scan({}, str(tmp_path / "linked"))) == []


def test_a_link_that_replaces_the_directory_is_not_followed(tmp_path: Path) -> None:
    files = tmp_path / "progress"
    files.mkdir()
    for name in ("a", "b"):
        (files / name).write_text("mine")
        (tmp_path / name).write_text("private")
    scanned = scan({}, str(tmp_path))
    first = next(scanned)
    files.rename(tmp_path / "moved")
    files.symlink_to(tmp_path)
    pieces = [base64.b64decode(one["data"]) for one in (first, *scanned)]
    assert pieces == [b"mine", b"mine"]
