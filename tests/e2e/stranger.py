"""Another user of this machine, who may use the engine, but has no access to this home or the
kit."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ID = 4321
SOCKET = Path("/var/run/docker.sock")


def _why_not() -> str:
    if os.geteuid() != 0:
        return "becoming another user takes root"
    if not SOCKET.exists() or not stat.S_IMODE(SOCKET.stat().st_mode) & stat.S_IWGRP:
        return "no group may use the engine's socket"
    return ""


possible = pytest.mark.skipif(bool(_why_not()), reason=_why_not())


def give(folder: Path) -> None:
    """Change the owner of the folder, and of everything in it, to this user."""
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, ID, ID)


def run(
    folder: Path, *command: str | Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command as this user in this folder, which is also their home."""
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "COMPOSE_ANSI": "never"}
    try:
        return subprocess.run(
            command,
            cwd=folder,
            user=ID,
            group=ID,
            extra_groups=[SOCKET.stat().st_gid],
            env={**own, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    except PermissionError as error:
        raise PermissionError(f"{error}; {_modes(Path(command[0]))}") from None


def _modes(path: Path) -> str:
    """The modes of a path and its folders, and of those that it leads to, for a failed test."""
    ways = dict.fromkeys([*path.parents, path, *path.resolve().parents, path.resolve()])
    return ", ".join(f"{way} {stat.filemode(way.lstat().st_mode)}" for way in ways)


def may_run(folder: Path, *command: str) -> bool:
    """Returns whether this user's command exists, may be run, and succeeds."""
    try:
        return run(folder, *command).returncode == 0
    except PermissionError:
        return False
