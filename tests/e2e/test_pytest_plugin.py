"""The pytest plugin in a user's project, on a real engine: two processes of pytest at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from tests.kit import mine
from tests.make import ROOT

MANIFEST = """
format = 1
name = "alone"
chief = 0
worker = 1
ps = 0
program = "../train.py"
"""
PROGRAM = """
import json, os, sys, time
if "fail" in sys.argv:
    raise ValueError("no data in here")
if "stay" in sys.argv:
    time.sleep(60)
with open(os.environ["CLUSTER_KIT_PROGRESS"], "a") as progress:
    print(json.dumps({"time": time.time(), "event": "metrics", "accuracy": 0.95}), file=progress)
"""
TESTS = """
import time
from pathlib import Path

MET = Path(__file__).parent

def test_it_learns(cluster):
    outcome = cluster.run("compose/alone.toml", program="train.py")
    assert outcome.metrics["accuracy"] > 0.9

def test_it_fails(cluster):
    with cluster.up("compose/alone.toml", args=["stay"]):
        meets("one", "other")
    assert cluster.run("compose/alone.toml", args=["fail"]).success

def test_beside_it(cluster):
    with cluster.up("alone", args=["stay"]) as up:
        meets("other", "one")
        assert up.exec("worker-0", "hostname").strip() == "worker-0"

def meets(me, other):
    \"\"\"Until both clusters are up at once.\"\"\"
    (MET / me).touch()
    until = time.monotonic() + 60
    while not (MET / other).exists():
        assert time.monotonic() < until, f"{other} never came up"
        time.sleep(0.1)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "compose").mkdir(parents=True)
    (folder / "compose" / "alone.toml").write_text(MANIFEST)
    (folder / "train.py").write_text(PROGRAM)
    (folder / "test_training.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return folder


def test_tests_run_in_parallel_and_a_failed_one_names_its_files(
    project: Path, client: docker.DockerClient
) -> None:
    base = project / "tmp"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cluster-kit"),
            *("-p", "cluster_kit.testing.plugin", "--cluster-kit-engine=require"),
            *("-n", "2", "-m", "cluster", f"--basetemp={base}", "--rootdir", project, project),
        ],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    output = done.stdout
    assert "1 failed, 2 passed" in output, output + done.stderr
    assert re.search(r"test-it-fails-\w{8}: failed in .* s, blame worker-0", output)
    assert "ValueError: no data in here" in output
    named = [Path(path) for path in re.findall(r"everything is in (/\S+)", output)]
    assert len(named) == 2 and all((run / "outcome.json").is_file() for run in named)
    assert "no data in here" in (named[1] / "logs" / "worker-0.log").read_text()
    found = base.glob("popen-gw*/cluster-kit*/runs/*")
    names = {path.name for path in found if path.is_dir()}
    assert len(names) == 4
    assert all(mine(client, name) == ([], []) for name in names)
    assert not (project / "runs").exists() and len([*project.glob("compose/*")]) == 1
