"""The leader's program waits for the others' graphs if they share a ps, and not longer."""

from __future__ import annotations

import threading
import time
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from types import SimpleNamespace

import pytest

from trainer.agent.injected import mailbox
from trainer.agent.supervisor.child import Program
from trainer.agent.supervisor.peers import IMPORTS_PATIENCE_S, LOOK_S, Together, let_train

CLASS = "class {}:\n    def {}(self, *arguments): pass\n"
MODULES = {
    "__init__": "",
    "python/__init__": "",
    "python/client/__init__": "",
    "python/client/session": CLASS.format("BaseSession", "__init__"),
    "python/eager/__init__": "",
    "python/eager/context": "pywrap_tfe = None\n" + CLASS.format("Context", "set_server_def"),
    "python/training/__init__": "",
    "python/training/coordinator": CLASS.format("Coordinator", "join"),
    "python/training/server_lib": CLASS.format("Server", "join"),
    "python/training/session_manager": CLASS.format("SessionManager", "prepare_session"),
}
"""Of TensorFlow, what the hooks change."""
GRAPH_S = 3
"""Seconds for which the leader builds its graph."""
PROGRAM = """
import os, pathlib, sys, time
here = pathlib.Path(__file__).parent
task = os.environ["CLUSTER_KIT_TASK"]
import tensorflow
from tensorflow.python.client.session import BaseSession
time.sleep(float(os.environ.get("GRAPH_S", 0)))
BaseSession("grpc://here")
(here / f"began-{task}").write_text(str(time.time()))
time.sleep(1)
"""
ENDS = (
    """
import os, sys
if os.environ["CLUSTER_KIT_TASK"] != "worker-0":
    sys.exit()
"""
    + PROGRAM
)


@pytest.fixture
def job(run_task, free_port, tmp_path: Path):
    """Returns a function that starts two workers (and a ps that runs the program); returns start
    times by task."""
    for name, text in MODULES.items():
        file = tmp_path / "tensorflow" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def start(program: str, *roles: str, **of_worker_1: object) -> dict[str, float]:
        (tmp_path / "train.py").write_text(program)
        cluster: dict[str, list[str]] = {}
        for name in ("worker-0", "worker-1", *roles):
            cluster.setdefault(name.partition("-")[0], []).append(f"127.0.0.1:{free_port()}")
        shared = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_SERVERS": ""}
        tasks = {
            name: run_task(name, cluster, "run", str(tmp_path / "train.py"), **shared,
                           **({"GRAPH_S": GRAPH_S} if name == "worker-0" else {}),
                           **(of_worker_1 if name == "worker-1" else {}))
            for name in ("worker-0", "worker-1", *roles)
        }  # fmt: skip
        assert tasks["worker-0"].wait(60) == 0, tasks["worker-0"].stdout.read()
        for task in tasks.values():
            task.wait(20)
        files = tmp_path.glob("began-*")
        return {file.name.removeprefix("began-"): float(file.read_text()) for file in files}

    return start


def test_a_worker_that_is_late_begins_with_the_others(job, tmp_path: Path) -> None:
    (tmp_path / "progress").mkdir()
    for name in ("worker-0", "worker-1"):  # of an earlier run: they must not count
        (tmp_path / "progress" / f"{name}.imported").touch()
        (tmp_path / "progress" / f"{name}.built").touch()
    began = job(PROGRAM, "ps-0", GRAPH_S=4.5)
    assert -0.2 <= began["worker-0"] - began["worker-1"] < 1
    assert began["worker-0"] > began["ps-0"] - 0.2


def test_the_leader_does_not_wait_for_a_task_that_has_ended(job) -> None:
    began_at = time.time()
    began = job(ENDS, "ps-0")
    assert set(began) == {"worker-0"}
    assert began["worker-0"] - began_at < GRAPH_S + IMPORTS_PATIENCE_S


class Told:
    """What a leader's supervisor tells its program, and the tasks that have not connected."""

    def __init__(self, folder: Path, *, builtin: bool = False, ps: bool = True) -> None:
        self.news: SimpleQueue[str] = SimpleQueue()
        self.missing: tuple[str, ...] = ("worker-1",)
        task = SimpleNamespace(
            name="worker-0", peers={"worker-1"}, cluster={"ps": ("a:1",)} if ps else {},
            progress_file=folder / "worker-0.jsonl",
        )  # fmt: skip
        child = SimpleNamespace(tell=self.news.put)
        self.over = threading.Event()
        let_train(task, Program((), builtin=builtin), child, self, self.over)


@pytest.mark.parametrize("alone", [{"ps": False}, {"builtin": True}])
def test_without_a_ps_and_with_a_built_in_program_the_leader_does_not_wait(
    tmp_path: Path, alone: dict[str, bool]
) -> None:
    told = Told(tmp_path, **alone)
    assert [told.news.get_nowait(), told.news.get_nowait()] == [
        mailbox.SERVERS_READY,
        mailbox.PEERS_READY,
    ]


def test_the_leader_begins_when_the_others_have_connected_and_left_their_marks(
    tmp_path: Path,
) -> None:
    told = Told(tmp_path)
    assert told.news.get_nowait() == mailbox.SERVERS_READY
    for name in ("worker-0", "worker-1"):
        (tmp_path / f"{name}.imported").touch()
        (tmp_path / f"{name}.built").touch()
    with pytest.raises(Empty):
        told.news.get(timeout=0.6)  # it is not there yet: its deadline counts
    told.missing = ()
    assert told.news.get(timeout=20) == mailbox.PEERS_READY


def begins_at(
    *,
    connected: float = 0.0,
    own_import: float = 3.0,
    own_graph: float = 5.0,
    others_import: float = 3.0,
    others_graph: float = 5.0,
) -> float:
    """Returns the second at which the leader's program may train, from when each thing is done."""
    together = Together()
    return next(
        now
        for now in (tick * LOOK_S for tick in count())
        if together.may_train(
            now,
            connected=now >= connected,
            imported=now >= own_import,
            built=now >= own_graph,
            others=(now >= others_import, now >= others_graph),
        )
        or now > 1000
    )


NEVER = 2000.0


@pytest.mark.parametrize(
    ("done", "begins"),
    [
        ({}, 5.0),
        ({"others_graph": 5.5}, 5.5),
        ({"own_graph": 15.0}, 15.0),
        # Others whose graphs take much longer, as an Estimator's workers, which sleep first.
        ({"others_graph": NEVER}, 3.0 + 1.5 * 2.0),
        ({"others_import": 30.0, "others_graph": NEVER}, 3.0 + IMPORTS_PATIENCE_S + 1.5 * 2.0),
        ({"others_import": 20.0, "others_graph": NEVER}, 20.0 + 1.5 * 2.0),
        # A busy machine: the patience for imports begins with the leader's own.
        (
            {"own_import": 70.0, "own_graph": 78.0, "others_import": 80.0, "others_graph": 87.0},
            87.0,
        ),
        ({"own_import": NEVER, "others_graph": NEVER}, 5.0),  # its mark could not be left
        ({"connected": 60.0}, 60.0),
        ({"connected": NEVER}, 1000.0),
    ],
)
def test_when_the_leader_begins_to_train(done: dict[str, float], begins: float) -> None:
    assert begins_at(**done) == pytest.approx(begins, abs=3 * LOOK_S)
