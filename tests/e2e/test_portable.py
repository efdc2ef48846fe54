"""A committed compose file: cloned, copied elsewhere, and run by somebody else, without the kit."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from tests.kit import Kit, mine

STRANGER = 4321
SOCKET = Path("/var/run/docker.sock")
PROGRAM = """
import os
from pathlib import Path

import tensorflow as tf

assert Path("/data/there.txt").read_text() == "yes\\n"
Path("/output/who").write_text(f"{os.getuid()}:{os.getgid()} {len(tf.__version__) > 0}\\n")
print(Path("/proc/self/status").read_text())
"""


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that another user may enter; pytest's own are this user's alone."""
    folder = Path(tempfile.mkdtemp(prefix="cluster-kit-elsewhere-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_stranger(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command of a user who may use the engine, and has neither this home nor the kit."""
    return subprocess.run(
        command,
        cwd=folder,
        user=STRANGER,
        group=STRANGER,
        extra_groups=[SOCKET.stat().st_gid],
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "COMPOSE_ANSI": "never"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
@pytest.mark.skipif(
    not SOCKET.exists() or not stat.S_IMODE(SOCKET.stat().st_mode) & stat.S_IWGRP,
    reason="no group may use the engine's socket",
)
def test_a_clone_that_is_copied_runs_for_another_user_and_the_results_are_theirs(
    kit: Kit, client: docker.DockerClient, elsewhere: Path
) -> None:
    (kit.root / "data").mkdir()
    (kit.root / "data" / "there.txt").write_text("yes\n")
    program = kit.program(PROGRAM)
    made = kit.run(
        *("render", "smoke", "--portable", "--name", kit.name, "--program", program),
        *("--data", "data", "--workers", "1", "--ps", "1"),
    )
    assert made.returncode == 0, made.stderr
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "ours")):
        who = ("-c", "user.name=we", "-c", "user.email=we@example.org")
        subprocess.run(["git", *who, *words], cwd=kit.root, check=True)
    cloned, copied = elsewhere / "clone", elsewhere / "copy"
    subprocess.run(["git", "clone", "-q", str(kit.root), str(cloned)], check=True)
    shutil.copytree(cloned, copied)
    for path in (copied, *copied.rglob("*")):
        os.chown(path, STRANGER, STRANGER)
    folder = copied / "portable" / kit.name
    done = as_stranger(folder, "docker", "compose", "up")
    containers, _ = mine(client, kit.name)
    assert done.returncode == 0, done.stderr
    assert {c.attrs["State"]["ExitCode"] for c in containers} == {0}
    assert (folder / "output" / "who").read_text() == f"{STRANGER}:{STRANGER} True\n"
    written = [folder / "output", *(folder / "output").rglob("*")]
    assert {path.stat().st_uid for path in written} == {STRANGER}
    capabilities = [line.split() for line in done.stdout.splitlines() if "CapEff:" in line]
    assert capabilities and all(int(words[-1], 16) == 0 for words in capabilities)
    assert as_stranger(folder, "docker", "compose", "down").returncode == 0
    assert mine(client, kit.name) == ([], [])
