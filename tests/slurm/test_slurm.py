"""Scripts on a real Slurm, without containers: a crash, a failure, several parts, a cancelled
job."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.make import ROOT
from tests.slurm.nodes import Slurm, python, slurm

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slurm")]
T = TypeVar("T")
QUICKSTART = (ROOT / "compose" / "quickstart.toml").read_text()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Slurm]:
    with slurm() as made:
        yield made


def png(shade: int, side: int = 8) -> bytes:
    """Returns a grey image with a gradient."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    row = bytes([0, *(min(255, shade + 4 * x) for x in range(side))])
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    data = zlib.compress(row * side)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def images(folder: Path) -> Path:
    for part, count in (("Train", 40), ("Validate", 10), ("Test", 10)):
        for shade, name in ((20, "dark"), (120, "grey"), (210, "light")):
            place = folder / part / name
            place.mkdir(parents=True)
            for number in range(count):
                (place / f"{number}.png").write_bytes(png(shade + number % 12))
    return folder


def rendered(folder: Path, name: str, manifest: str, *options: str) -> str:
    """Render a manifest in this directory; returns the path of its script."""
    (folder / "compose").mkdir()
    (folder / "compose" / f"{name}.toml").write_text(manifest)
    command = [sys.executable, "-m", "cluster_kit", "render", name, "--engine", "slurm"]
    subprocess.run(
        [*command, "--set", f'slurm.python="{python()}"', *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
    )
    return f"compose/{name}/sbatch.sh"


def until(look: Callable[[], T], within_s: float = 120) -> T:
    """Returns the result of `look` as soon as it is true."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come")


def run_of(folder: Path) -> Path:
    return until(lambda: next(iter(folder.glob("runs/*/latest")), None)).resolve()


def steps(run: Path) -> list[float]:
    with contextlib.suppress(OSError):
        lines = (run / "output" / "progress" / "chief-0.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        return [event["time"] for event in events if event["event"] == "epoch"]
    return []


def process_of(run: Path, task: str) -> int:
    """Returns the process id, on this machine, of a task's server."""
    wanted = {f"CLUSTER_KIT_TASK={task}", f"CLUSTER_KIT_OUTPUT={run}/output"}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (place / "cmdline").read_bytes().decode().split("\0")
            told = (place / "environ").read_bytes().decode(errors="replace").split("\0")
            if "trainer" in words and wanted <= {*told}:
                return int(place.name)
    raise AssertionError(f"{task} does not run")


def outcome(run: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((run / "outcome.json").read_text())
    return found


def ended(run: Path) -> dict[str, int]:
    return {file.name: int(file.read_text()) for file in (run / "ended").glob("[!.]*")}


def test_the_quickstart_continues_after_a_worker_crashed(nodes: Slurm, tmp_path: Path) -> None:
    data = images(tmp_path / "images")
    options = ("--data", str(data), "--set", 'slurm.options=["--nodes=3"]')
    script = rendered(tmp_path, "quickstart", QUICKSTART, *options, "--args=--epochs 12")
    job = nodes.submit(tmp_path, script)
    run = run_of(tmp_path)
    until(lambda: len(steps(run)) >= 2)
    os.kill(process_of(run, "worker-1"), signal.SIGKILL)
    killed = time.time()
    assert nodes.wait(tmp_path, job) == 0, (
        tmp_path / f"cluster-kit-quickstart-{job}.log"
    ).read_text()
    assert steps(run)[-1] > killed and len({*steps(run)}) >= 12
    assert "worker-1 ended with exit code 137" in (run / "logs" / "worker-1.log").read_text()
    hosts = {line.split()[2] for line in (run / "places").read_text().splitlines()}
    assert hosts == {"n1", "n2", "n3"}
    assert {*ended(run).values()} == {0} and len(ended(run)) == 6
    assert outcome(run)["success"] is True
    report = subprocess.run(
        [sys.executable, "-m", "cluster_kit", "report", "quickstart"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "report.html" in report.stdout + report.stderr
    assert '"action": "die", "exit_code": 137' in (run / "events.jsonl").read_text()


def test_a_failed_leader_ends_the_job_with_the_kits_code(nodes: Slurm, tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "train.py").write_text("raise SystemExit('no such model')\n")
    manifest = 'format = 1\nname = "broken"\nworker = 1\nps = 1\nretries = 0\n'
    program = ("--program", "program/train.py")
    job = nodes.submit(tmp_path, rendered(tmp_path, "broken", manifest, *program))
    assert nodes.wait(tmp_path, job) == 5
    run = run_of(tmp_path)
    assert (outcome(run)["reason"], outcome(run)["blame"]) == ("failed", "chief-0")
    assert "no such model" in str(outcome(run)["message"])
    assert ended(run)["worker-0"] == ended(run)["ps-0"] == 0, "they ended with the job"


def test_tasks_with_different_resources_are_parts_of_one_job(nodes: Slurm, tmp_path: Path) -> None:
    manifest = (
        'format = 1\nname = "line"\nchief = 0\nworker = 2\nps = 1\nprogram = "linear-regression"\n'
        'style = "all-tasks"\n'
        '[role.worker]\ncpus = 2\nmemory = "1g"\n[role.ps]\nmemory = "500m"\n'
    )
    job = nodes.submit(tmp_path, rendered(tmp_path, "line", manifest))
    code = nodes.wait(tmp_path, job)
    assert code == 0, (tmp_path / f"cluster-kit-line-{job}.log").read_text()
    run = run_of(tmp_path)
    assert [line.split()[:2] for line in (run / "places").read_text().splitlines()] == [
        ["worker-0", "0"],
        ["worker-1", "0"],
        ["ps-0", "1"],
    ]


def test_a_cancelled_job_ends_all_of_its_tasks(nodes: Slurm, tmp_path: Path) -> None:
    data = images(tmp_path / "images")
    script = rendered(
        tmp_path, "quickstart", QUICKSTART, "--data", str(data), "--args=--epochs 900"
    )
    job = nodes.submit(tmp_path, script)
    run = run_of(tmp_path)
    until(lambda: steps(run))
    nodes.run(tmp_path, "scancel", str(job))
    until(lambda: (run / "outcome.json").exists(), 60)
    assert (outcome(run)["reason"], outcome(run)["exit_code"]) == ("stopped", 7)
    until(lambda: len(ended(run)) == 6, 30)
    assert "stopped by SIGTERM; saved step" in (run / "logs" / "chief-0.log").read_text()
