"""Changes of watched files are detected, once, however an editor writes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import watchfiles

from cluster_kit.util.changes import Changes, Watched

pytestmark = pytest.mark.first

NOTICED_S = 20.0


def noticed(changes: Changes, write: Callable[[], object]) -> list[Path]:
    """Returns the reported change; the change is repeated until watching has begun."""
    until = time.monotonic() + NOTICED_S
    while time.monotonic() < until:
        write()
        again = time.monotonic() + 2.0
        while time.monotonic() < again:
            if found := changes.taken():
                return found
            time.sleep(0.02)
    raise AssertionError("the change was never noticed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("mine/deep", "mine/runs/demo", "mine/__pycache__", "compose"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def watched(folder: Path) -> Watched:
    return Watched((folder / "mine",), (folder / "compose/demo.toml",), (folder / "mine/runs",))


def test_a_folder_is_watched_to_its_depth_and_a_file_by_its_name(folder: Path) -> None:
    with Changes(watched(folder)) as changes:
        deep = folder / "mine" / "deep" / "model.py"
        assert noticed(changes, lambda: deep.write_text(str(time.time()))) == [deep]
        manifest = folder / "compose" / "demo.toml"

        def replaced() -> None:
            new = manifest.with_suffix(".new")
            new.write_text(str(time.time()))
            new.replace(manifest)

        assert noticed(changes, replaced) == [manifest]


def test_files_that_runs_python_and_editors_write_are_ignored(folder: Path) -> None:
    with Changes(watched(folder)) as changes:
        program = folder / "mine" / "train.py"
        noticed(changes, lambda: program.write_text(str(time.time())))
        time.sleep(1.0)
        changes.taken()
        for name in ("mine/runs/demo/log", "mine/__pycache__/t.pyc", "mine/.train.py.swp",
                     "compose/other.toml"):  # fmt: skip
            (folder / name).write_text("x")
        assert noticed(changes, lambda: program.write_text(str(time.time()))) == [program]


def test_several_files_that_change_together_are_one_change(folder: Path) -> None:
    with Changes(watched(folder)) as changes:
        files = [folder / "mine" / f"{name}.py" for name in "abc"]
        noticed(changes, lambda: [file.write_text(str(time.time())) for file in files])
        time.sleep(1.0)
        changes.taken()
        for file in files:
            file.write_text("again")
        assert changes.wait() == files
        time.sleep(0.5)
        assert changes.taken() == []


def test_a_host_without_file_notifications_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watchfiles, "watch", refuse)
    with Changes(watched(folder)) as changes, pytest.raises(OSError, match="watch limit reached"):
        changes.wait()
