"""Files below one root: written completely, runs numbered, `latest` pointing at the newest."""

from __future__ import annotations

import errno
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import HostError, UsageError
from cluster_kit.util.paths import CLONE
from cluster_kit.workspace import (
    RunDirectory,
    Workspace,
    here,
    last_run,
    new_run,
    user_name,
    write_atomically,
)

NOW = datetime(2025, 3, 1, 10, 0, 0)


def test_a_file_is_replaced_completely_and_no_other_file_is_left(tmp_path: Path) -> None:
    file = tmp_path / "a" / "compose.yaml"
    write_atomically(file, "old")
    write_atomically(file, "new é")
    assert file.read_text(encoding="utf-8") == "new é"
    assert list(file.parent.iterdir()) == [file]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "compose.yaml"
    write_atomically(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "\ud800")
    assert file.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [file], "and no half of a new one"


def test_two_runs_in_one_second_have_separate_directories(tmp_path: Path) -> None:
    first, second = new_run(tmp_path, NOW), new_run(tmp_path, NOW)
    assert first.path.name == "20250301-100000"
    assert second.path.name == "20250301-100000-2"
    assert (tmp_path / "latest").resolve() == second.path
    assert second.progress.is_dir()
    assert second.logs.is_dir()


def test_a_copied_latest_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    """`cp -rL`, or a person's `mkdir -p runs/demo/latest/output`."""
    (tmp_path / "latest").mkdir()
    with pytest.raises(HostError, match="latest is not the link to the newest run"):
        new_run(tmp_path, NOW)
    assert [path.name for path in tmp_path.iterdir()] == ["latest"]


def test_others_cannot_open_a_directory_of_a_run_before_its_tasks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    make = Path.mkdir

    def mkdir(path: Path, *given: Any, **more: Any) -> None:
        make(path, *given, **more)
        if path.parent == tmp_path:
            modes.append(path.stat().st_mode & 0o777)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    new_run(tmp_path, NOW)
    assert modes == [0o700]


def test_git_ignores_runs_and_an_existing_gitignore_stays(tmp_path: Path) -> None:
    new_run(tmp_path / "runs" / "demo", NOW)
    ignored = tmp_path / "runs" / ".gitignore"
    assert ignored.read_text().splitlines()[1:] == ["*"]
    ignored.write_text("!demo\n")
    new_run(tmp_path / "runs" / "demo", NOW)
    assert ignored.read_text() == "!demo\n"


def test_the_last_run_is_continued(tmp_path: Path) -> None:
    new_run(tmp_path, NOW)
    newest = new_run(tmp_path, NOW.replace(hour=11))
    assert last_run(tmp_path).path == newest.path


def test_latest_points_at_the_continued_run_after_the_newest_was_moved_away(
    tmp_path: Path,
) -> None:
    older = new_run(tmp_path, NOW)
    new_run(tmp_path, NOW.replace(hour=11)).path.rename(tmp_path.parent / "archive")
    assert last_run(tmp_path).path == older.path
    assert (tmp_path / "latest").resolve() == older.path


def test_a_resumed_run_of_an_older_kit_is_hidden_from_git(tmp_path: Path) -> None:
    new_run(tmp_path / "runs" / "demo", NOW)
    (tmp_path / "runs" / ".gitignore").unlink()
    last_run(tmp_path / "runs" / "demo")
    assert (tmp_path / "runs" / ".gitignore").read_text().endswith("*\n")


def test_a_file_that_cannot_be_written_is_named_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path, datetime(2026, 1, 1))
    (log := run.logs / "chief-0.log").write_text("")
    monkeypatch.setattr(os, "access", lambda path, _mode: path != log)
    with pytest.raises(HostError, match=r"logs/chief-0\.log cannot be written") as refused:
        last_run(tmp_path)
    assert f"sudo chown {os.getuid()} {log}" in refused.value.hint


def test_root_is_told_who_can_continue_another_users_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path, datetime(2026, 1, 1))
    if os.geteuid() == 0:
        os.chown(run.path, 54321, 54321)
    name = user_name(run.owner)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(HostError, match=f"belongs to {name}: tasks of another user") as refused:
        last_run(tmp_path)
    assert f"sudo -u {name} cluster-kit up … --resume" in refused.value.hint
    monkeypatch.setattr(os, "geteuid", lambda: run.owner or 1)
    assert last_run(tmp_path).path == run.path


def test_a_user_who_cannot_close_another_users_run_does_not_continue_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run(tmp_path, datetime(2026, 1, 1))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.setattr(os, "chmod", refuse)
    with pytest.raises(HostError, match=f"belongs to {user_name(run.owner)}: tasks of another"):
        last_run(tmp_path)


def test_only_a_directory_that_up_has_created_is_opened_to_others(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    mine = RunDirectory(runs / "mine")
    mine.output.mkdir(parents=True)
    mine.path.chmod(0o700)
    shell = mine.output / "shell"
    shell.touch()
    shell.chmod(0o4755)
    runs.chmod(0o755)
    mine.open_to_others()
    assert mine.path.stat().st_mode & 0o777 == 0o700, "CLUSTER_KIT_OUTPUT names any folder"
    assert shell.stat().st_mode & 0o7777 == 0o755
    mine.record.touch()
    mine.open_to_others()
    assert mine.path.stat().st_mode & 0o777 == 0o755


def test_without_a_run_there_is_nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        last_run(tmp_path / "demo")
    assert "nothing to resume" in caught.value.message
    assert "without --resume" in caught.value.hint


def test_a_directory_with_manifests_is_a_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert here().root == CLONE
    (tmp_path / "compose").mkdir()
    assert here().root == tmp_path
    assert here().generated("demo") == tmp_path / "compose" / "demo" / "compose.yaml"


def test_a_cluster_is_recognized_only_by_files_that_the_kit_wrote(tmp_path: Path) -> None:
    header = "# cluster-kit 0.1.0 wrote this from compose/demo.toml. Do not edit:\n"
    files = {
        "a/compose.yaml": header,
        "b/stack.yaml": header,
        "c/kubernetes.yaml": header,
        "d/sbatch.sh": f"#!/bin/bash\n{header}",
        "mine/values.yaml": header,
        "mine/books.yaml": "",
        "hers/compose.yaml": "services: {}\n",
        "empty/notes.txt": "",
    }
    for name, text in files.items():
        file = tmp_path / "compose" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert Workspace(tmp_path).known() == ["a", "b", "c", "d"]


def test_the_workspace_of_a_run_is_above_runs_or_the_run_itself() -> None:
    for folder in ("runs/demo/1", "compose/demo", "portable/demo"):
        assert RunDirectory(Path("/home/me") / folder).workspace == Path("/home/me")
    assert RunDirectory(Path("/out")).workspace == Path("/out")
