"""Files that a container can write are read without following links, blocking, or trusting them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from cluster_kit.util import untrusted
from cluster_kit.util.untrusted import files, is_directory, let_in, read, read_end, status


@pytest.fixture
def output(tmp_path: Path) -> Path:
    folder = tmp_path / "output"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "plain").write_bytes(b"content")
    (tmp_path / "host").write_bytes(b"of the host")
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "plain").write_bytes(b"of the host")
    return folder


def test_a_regular_file_is_read(output: Path) -> None:
    assert read(output, "a/b/plain", 100) == b"content"
    assert read(output, Path("a/b/plain"), 7) == b"content"
    assert read_end(output, "a/b/plain", 3) == b"ent"
    assert status(output, "a/b/plain").st_size == 7


def test_a_file_that_is_too_long_is_refused(output: Path) -> None:
    with pytest.raises(OSError, match="too large"):
        read(output, "a/b/plain", 6)
    with (output / "sparse").open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(OSError, match="too large"):
        read(output, "sparse", 1 << 20)
    assert read_end(output, "sparse", 10) == bytes(10)


@pytest.mark.parametrize("name", ["", ".", "..", "../host", "/etc/passwd", "a/../../host"])
def test_paths_stay_below_the_root(output: Path, name: str) -> None:
    with pytest.raises(OSError):
        read(output, name, 100)


@pytest.mark.parametrize("level", ["link", "folder/plain", "a/link/plain"])
def test_links_are_not_followed_at_any_level(output: Path, level: str) -> None:
    (output / "link").symlink_to("../host")
    (output / "folder").symlink_to("../hosts")
    (output / "a" / "link").symlink_to(output.parent / "hosts")
    for reads in (read, read_end):
        with pytest.raises(OSError):
            reads(output, level, 100)
    assert not is_directory(output, "folder")
    assert is_directory(output, "a/b")
    assert [found.name for found in files(output)] == ["a/b/plain"]


def test_only_regular_files_are_opened(output: Path) -> None:
    os.mkfifo(output / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(output / "s"))
    began = time.monotonic()
    for name in ("fifo", "s", "a"):
        with pytest.raises(OSError):
            read(output, name, 100)
    assert time.monotonic() - began < 10
    assert [found.name for found in files(output)] == ["a/b/plain"]


def test_a_swap_between_check_and_open_has_no_effect(output: Path) -> None:
    """Another thread replaces a file and a directory by links all the time."""
    plain = output / "a" / "b" / "plain"
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for path, target in ((plain, output.parent / "host"), (plain.parent, "../../hosts")):
                away = path.with_name("away")
                path.rename(away)
                path.symlink_to(target)
                path.unlink()
                away.rename(path)
                time.sleep(0.001)

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen = set()
    try:
        until = time.monotonic() + 1
        while time.monotonic() < until:
            try:
                seen.add(read(output, "a/b/plain", 100))
            except OSError as error:
                seen.add(type(error).__name__.encode())
            for found in files(output):
                assert found.size == 7
    finally:
        stop.set()
        swapping.join()
    assert b"content" in seen
    assert b"of the host" not in seen


def test_listings_are_bounded(output: Path) -> None:
    deep = os.open(output, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d", dir_fd=deep)
        inner = os.open("d", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = inner
    os.close(os.open("unseen", os.O_WRONLY | os.O_CREAT, dir_fd=deep))
    os.close(deep)
    names = {found.name for found in files(output)}
    assert names == {"a/b/plain"}
    assert not list(files(output, deepest=1))
    assert len(list(files(output, most=5))) <= 1
    assert list(files(output, "not-there")) == []


def _open_below(folder: Path) -> list[str]:
    """Returns the files that this process has open there; threads of other tests use other
    places."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(link.readlink()))
    return [path for path in found if path.startswith(str(folder))]


def test_no_descriptor_is_left_open(output: Path) -> None:
    for found in files(output):
        assert found.name == "a/b/plain"
        break
    read(output, "a/b/plain", 100)
    with pytest.raises(OSError):
        untrusted.opened(output, "a")
    assert _open_below(output) == []


def test_a_listing_has_the_kind_of_each_file(output: Path) -> None:
    os.link(output / "a" / "b" / "plain", output / "twin.index")
    twin, plain = sorted(files(output), key=lambda found: -len(found.name.split(".")))
    assert (twin.name, plain.name) == ("twin.index", "a/b/plain")
    assert twin.identity == plain.identity
    assert twin.size == 7
    (only,) = files(output, matches=lambda name: name.endswith(".index"))
    assert only.name == "twin.index"
    (inner,) = files(output, "a")
    assert inner.name == "a/b/plain"


def test_no_file_keeps_its_set_user_id_bit(output: Path) -> None:
    plain, host = output / "a" / "b" / "plain", output.parent / "host"
    host.chmod(0o4755)
    (output / "a" / "link").symlink_to(host)
    for name, mode in (("plain", 0o4755), ("unreadable", 0o6111)):
        (output / "a" / "b" / name).touch()
        (output / "a" / "b" / name).chmod(mode)
    untrusted.drop_set_ids(output)
    assert plain.stat().st_mode & 0o7777 == 0o755
    assert (output / "a" / "b" / "unreadable").stat().st_mode & 0o7777 == 0o111
    assert host.stat().st_mode & 0o7777 == 0o4755, "a link is not followed"
    assert output.stat().st_mode & 0o077, "others may look in as before"


def test_files_that_are_too_deep_are_closed_to_others(output: Path) -> None:
    deep = output.joinpath(*["d"] * (untrusted.MOST_LEVELS + 2))
    deep.mkdir(parents=True)
    (deep / "shell").touch()
    (deep / "shell").chmod(0o4755)
    untrusted.drop_set_ids(output)
    assert output.stat().st_mode & 0o777 == 0o700
    untrusted.drop_set_ids(output / "nowhere")


def deep_and_wide(output: Path, levels: int, length: int, wide: int, *, shells: bool) -> None:
    """Create this many nested directories with long names, and in the last one this many
    directories or files."""
    folder = os.open(output, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * length, dir_fd=folder)
        inner = os.open("d" * length, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    for index in range(wide):
        if shells:
            file = os.open(f"s{index}", os.O_CREAT | os.O_WRONLY, dir_fd=folder)
            os.fchmod(file, 0o4755)
            os.close(file)
        else:
            os.mkdir(f"w{index}", dir_fd=folder)
    os.close(folder)


def test_no_path_is_stored_for_skipped_files(output: Path) -> None:
    """Each path would have 30 kB."""
    deep_and_wide(output, untrusted.MOST_LEVELS, 100, 500, shells=False)
    tracemalloc.start()
    try:
        untrusted.drop_set_ids(output)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert output.stat().st_mode & 0o777 == 0o700
    assert most < 1 << 20
    deep_and_wide(output / "a", 200, 10, 100, shells=True)
    opened: list[object] = []
    with pytest.MonkeyPatch.context() as patched:
        real = os.open
        patched.setattr(os, "open", lambda *a, **more: opened.append(a) or real(*a, **more))
        untrusted.drop_set_ids(output)
    assert len(opened) < 700, "no file costs a walk from the top"
    assert not any(f.mode & stat.S_ISUID for f in files(output, deepest=untrusted.MOST_LEVELS))
    shutil.rmtree(output)


def modes(folder: Path) -> dict[str, int]:
    """Returns the permissions of each directory below a folder, by name, without those of links."""
    found = (path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink())
    return {path.name: path.stat().st_mode & 0o777 for path in found}


def test_closed_directories_of_the_caller_are_opened_and_no_link_is_followed(output: Path) -> None:
    (output / "link").symlink_to("../hosts")
    (output / "a" / "up").symlink_to("../..")
    for path, mode in (
        (output.parent / "hosts", 0o500),
        (output / "a" / "b", 0),
        (output / "a", 0),
    ):
        path.chmod(mode)
    let_in(output)
    assert modes(output) == {"a": 0o700, "b": 0o700}
    assert (output.parent / "hosts").stat().st_mode & 0o777 == 0o500


def test_directories_of_other_users_are_unchanged(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (output / "a" / "b").chmod(0o500)
    monkeypatch.setattr(os, "geteuid", lambda: output.stat().st_uid + 1)
    let_in(output)
    assert modes(output)["b"] == 0o500
