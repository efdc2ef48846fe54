"""A committed compose file: cloned, copied elsewhere, and run by another user without the kit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import docker

from tests.e2e import stranger
from tests.kit import Kit, mine

PROGRAM = """
import os
from pathlib import Path

import tensorflow as tf

assert Path("/data/there.txt").read_text() == "yes\\n"
Path("/output/who").write_text(f"{os.getuid()}:{os.getgid()} {len(tf.__version__) > 0}\\n")
print(Path("/proc/self/status").read_text())
"""


@stranger.possible
def test_a_copied_clone_runs_for_another_user_who_owns_the_results(
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
    stranger.give(copied)
    folder = copied / "portable" / kit.name
    done = stranger.run(folder, "docker", "compose", "up")
    containers, _ = mine(client, kit.name)
    assert done.returncode == 0, done.stderr
    assert {c.attrs["State"]["ExitCode"] for c in containers} == {0}
    assert (folder / "output" / "who").read_text() == f"{stranger.ID}:{stranger.ID} True\n"
    written = [folder / "output", *(folder / "output").rglob("*")]
    assert {path.stat().st_uid for path in written} == {stranger.ID}
    capabilities = [line.split() for line in done.stdout.splitlines() if "CapEff:" in line]
    assert capabilities and all(int(words[-1], 16) == 0 for words in capabilities)
    assert stranger.run(folder, "docker", "compose", "down").returncode == 0
    assert mine(client, kit.name) == ([], [])
