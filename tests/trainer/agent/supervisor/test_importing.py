"""The leader's program waits for the other tasks' imports if they share a ps, and not longer."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainer.agent.supervisor import peers
from trainer.agent.supervisor.child import Program

PROGRAM = """
import os, pathlib, sys, time
here = pathlib.Path(__file__).parent
task = os.environ["CLUSTER_KIT_TASK"]
time.sleep(float(os.environ.get("LATE", 0)))
until = time.time() + float(os.environ.get("WAITS_FOR_WORKER_0", 0))
while time.time() < until and "began-worker-0" not in os.listdir(here):
    time.sleep(0.05)
import tensorflow
(here / f"began-{task}").write_text(str(time.time()))
time.sleep(1)
"""
NO_TENSORFLOW = PROGRAM.replace("import tensorflow\n", "")


@pytest.fixture
def job(run_task, free_port, tmp_path: Path, toy_tensorflow: None):
    """Returns a function that starts two workers (and a ps that runs the program); returns start
    times by task."""

    def start(program: str, *roles: str, **of_worker_1: object) -> dict[str, float]:
        (tmp_path / "train.py").write_text(program)
        cluster: dict[str, list[str]] = {}
        for name in ("worker-0", "worker-1", *roles):
            cluster.setdefault(name.partition("-")[0], []).append(f"127.0.0.1:{free_port()}")
        shared = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_SERVERS": ""}
        tasks = {
            name: run_task(name, cluster, "run", str(tmp_path / "train.py"), **shared,
                           **(of_worker_1 if name == "worker-1" else {}))
            for name in ("worker-0", "worker-1", *roles)
        }  # fmt: skip
        assert tasks["worker-0"].wait(60) == 0, tasks["worker-0"].stdout.read()
        for task in tasks.values():
            task.wait(20)
        files = tmp_path.glob("began-*")
        return {file.name.removeprefix("began-"): float(file.read_text()) for file in files}

    return start


def test_a_late_worker_joins_at_the_beginning_of_the_job(job, tmp_path: Path) -> None:
    (tmp_path / "progress").mkdir()
    # A file of an earlier run, which must not count.
    (tmp_path / "progress" / "worker-1.imported").touch()
    began = job(PROGRAM, "ps-0", LATE=2)
    assert -0.2 <= began["worker-0"] - began["worker-1"] < 10
    assert began["worker-0"] > began["ps-0"] - 0.2


def test_without_a_ps_the_leader_does_not_wait(job) -> None:
    began = job(PROGRAM, WAITS_FOR_WORKER_0=30)
    assert 0 <= began["worker-1"] - began["worker-0"] < 25


def test_the_leader_does_not_wait_for_a_task_that_has_ended(job) -> None:
    began = job(NO_TENSORFLOW.replace("time.sleep(1)", "pass").replace(
        "(here /", "if task == 'worker-0': import tensorflow\n(here /"), "ps-0")  # fmt: skip
    assert began["worker-0"] - began["worker-1"] < peers.IMPORTS_PATIENCE_S / 2


def test_a_program_that_never_imports_tensorflow_delays_the_others_only_briefly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "IMPORTS_PATIENCE_S", 0.3)
    told = threading.Event()
    task = SimpleNamespace(
        peers={"worker-1"}, cluster={"ps": ("a:1",)}, progress_file=tmp_path / "worker-0.jsonl"
    )
    child = SimpleNamespace(tell=lambda _: told.set())
    others = SimpleNamespace(missing=("worker-1",))
    program = Program((), builtin=False)
    peers.start_after_imports(task, program, child, others, threading.Event())
    assert not told.wait(0.6), "it is not there yet: its deadline counts"
    others.missing = ()
    assert told.wait(20)
