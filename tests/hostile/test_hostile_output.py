"""A program leaves traps in its output: the run ends normally, and the host is not affected."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.e2e.running import read_until, running
from tests.kit import Kit, why_no_engine

WHY_NOT = why_no_engine()
pytestmark = [pytest.mark.engine, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

SECRET = "tok_ABCDEF_0123456789"
PRIVATE = "a private file of the host"
MOST_MB = 300
TRAPS = r"""
import json, os, socket, sys
if "chief" not in json.loads(os.environ["TF_CONFIG"])["task"]["type"]:
    sys.exit()
victim = sys.argv[1]
secret = os.environ["MY_API_TOKEN"]
os.chdir("/output")
for name in ("model", "profile/a", "profile/b", "profile/c", "profile/d", "stacks", "tensorboard"):
    os.makedirs(name, exist_ok=True)
for name in (".room", "result.json", "model/model.ckpt-7.index", "model/checkpoint", "report.html",
             "stacks/chief-0.txt", "profile/b/profile.json", "progress/notes.txt", "host-chief.new",
             "progress/linked.jsonl", "progress/worker-9.jsonl", "progress/a.usage",
             "tensorboard/events.out.tfevents.1.a", "closed", "progress/.x.jsonl"):
    os.symlink(victim + "/private", name)
for number in range(2000):
    os.symlink(victim + f"/made-{number}", f"progress/.secret.jsonl.{number}")
os.symlink(victim, "profile/linked")
os.symlink(victim + "/nologin", "progress/dangling.jsonl")
for name in ("progress/host.jsonl", "progress/fifo.jsonl", "profile/a/profile.json",
             "progress/b.usage", "stacks/worker-0.txt"):
    os.mkfifo(name)
socket.socket(socket.AF_UNIX).bind("progress/socket.jsonl")
open("progress/secret.jsonl", "w").write(f"# {secret}\nssh-ed25519 AAAA-ATTACKER\n")
open("profile/c/profile.json", "w").write("[" * 200_000)
open("profile/d/profile.json", "w").write('{"began": "abc", "seconds": NaN, "tasks": 5}')
with open("progress/sparse.jsonl", "wb") as file:
    file.truncate(3 << 30)
with open("progress/long.jsonl", "wb") as file:
    file.write(b"x" * (64 << 20))
for name in (b"\xff\xfe.jsonl", b"a\nb.jsonl", b"n" * 249 + b".jsonl", b"\x1b]0;title\x07.jsonl"):
    open(b"/output/progress/" + name, "wb").write(b"{}\n")
LINES = ['{"time": NaN, "event": "end", "tasks": 5}', '{"time": 1, "event": "end", "tasks": [1]}',
         '{"time": 1e300, "event": "asked", "what": "stop", "tasks": ["chief-0"]}',
         '{"time": Infinity, "event": "step", "step": 1}', '[' * 5000, '{"event": "ready"}', 'null',
         '{"time": "x", "event": ["a"]}', '{"time": 1, "event": "metrics", "m": {"a": NaN}}']
for name in ("chief-0.jsonl", "worker-0.jsonl"):
    with open(f"progress/{name}", "ab") as file:
        for number in range(20_000):
            file.write(b'{"time": 1.5, "event": "step", "step": %d, "loss": NaN}\n' % number)
        for line in LINES:
            file.write(line.encode() + b"\n")
here = os.open("/output/model", os.O_RDONLY)
for _ in range(1200):
    os.mkdir("d" * 200, dir_fd=here)
    inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
    os.close(here)
    here = inner
"""
FLOODS = r"""
print("y" * (200 << 20))
for _ in range(100_000):
    print("a line of many")
for _ in range(2_000):
    print("Traceback (most recent call last):\n  {{function_node " * 3)
"""
PROGRAM = f"{TRAPS}{FLOODS}"
WAITS = f"""{TRAPS}
import time
print("traps are laid", flush=True)
time.sleep(120)
"""
VARIABLES = {"MY_API_TOKEN": SECRET}
MEASURED = (
    "import resource, subprocess, sys\n"
    "done = subprocess.run(sys.argv[1:])\n"
    "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)\n"
    "sys.exit(done.returncode)\n"
)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the host that no container can see."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "private").write_text(PRIVATE)
    return folder


def up(kit: Kit, victim: Path, program: str) -> list[str]:
    return [
        *("up", "quickstart", "--name", kit.name, "--program", kit.program(program)),
        *("--style", "all-tasks", "--workers", "1", "--ps", "0", "--set", "evaluator=0"),
        *("--set", f'args=["{victim}"]', "--set", 'role.chief.secrets=["MY_API_TOKEN"]'),
        *("--set", 'role.worker.environment={MY_API_TOKEN="x"}'),
    ]


def check_untouched(victim: Path) -> None:
    assert [path.name for path in victim.iterdir()] == ["private"]
    assert (victim / "private").read_text() == PRIVATE


def test_a_run_ends_normally_whatever_its_output_contains(kit: Kit, victim: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *kit.command(*up(kit, victim, PROGRAM))],
        cwd=kit.root, env=kit.environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    output = done.stdout[-3000:] + done.stderr[-3000:]
    assert (done.returncode, "/cluster_kit/" in done.stderr) == (0, False), output
    peak = int(done.stdout.rpartition("peak ")[2])
    assert peak < MOST_MB, f"{peak} MB"
    assert kit.outcome()["success"]
    check_untouched(victim)
    for verb in ("report", "metrics", "runs", "summary", "logs"):
        name = () if verb in ("runs", "summary") else (kit.name,)
        after = kit.run(verb, *name)
        assert (after.returncode, "/cluster_kit/" in after.stderr) == (0, False), (
            verb,
            after.stderr,
        )
    packed = kit.root / "bug.tar.gz"
    after = kit.run("bug-report", kit.name, "--output", str(packed))
    assert after.returncode == 0, after.stdout + after.stderr
    with tarfile.open(packed) as archive:
        for member in archive.getmembers():
            assert member.isfile() or member.isdir(), member.name
            content = archive.extractfile(member)
            text = content.read() if content else b""
            assert PRIVATE.encode() not in text and SECRET.encode() not in text, member.name
    check_untouched(victim)


def test_a_cluster_is_taken_down_whatever_its_output_contains(kit: Kit, victim: Path) -> None:
    with running(kit, *up(kit, victim, WAITS)) as process:
        read_until(process, "traps are laid")
        for verb in (("status", kit.name), ("stop", kit.name)):
            done = kit.run(*verb)
            assert "/cluster_kit/" not in done.stderr, (verb, done.stderr)
        done = kit.run("down", kit.name)
        assert (done.returncode, "/cluster_kit/" in done.stderr) == (0, False), done.stderr
        process.communicate(timeout=60)
    check_untouched(victim)
