"""tf.data service's tasks, with a toy in TensorFlow's place: what they start, and how they end."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
from conftest import IMAGE
from connected import wait_for_a_follower
from reading import read_until

from trainer.agent import services
from trainer.agent.beacon.messages import LOST, Left, Silent, decode
from trainer.agent.errors import ContractError, ServerError
from trainer.agent.progress_file import Progress
from trainer.agent.servers import data_service
from trainer.agent.supervisor.peers import HELP_S, Peers, SilentTasks
from trainer.agent.task import read_task
from trainer.contract.events import decode as decode_event

TOY = """
import json, os, socket
from types import SimpleNamespace

def config(kind):
    def made(**keys):
        with open(os.path.join(os.environ["TMPDIR"], f"{kind}-{keys['port']}"), "a") as file:
            file.write(json.dumps(keys) + "\\n")
        return keys
    made._fields = ("worker_addresses",)
    return made

class Server:
    def __init__(self, keys):
        self.socket = socket.create_server(("127.0.0.1", keys["port"]))
    def _num_workers(self):
        return int(os.environ.get("TOY_WORKERS", 1))

__version__ = "2.0.4"
data = SimpleNamespace(experimental=SimpleNamespace(service=SimpleNamespace(
    DispatcherConfig=config("dispatcher"), WorkerConfig=config("worker"),
    DispatchServer=Server, WorkerServer=Server,
)))
"""
GRPC = """
import contextlib, socket

class FutureTimeoutError(Exception):
    pass

@contextlib.contextmanager
def insecure_channel(address, options):
    yield address

class channel_ready_future:
    def __init__(self, address):
        self.address = address
    def result(self, timeout):
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout).close()
        except OSError:
            raise FutureTimeoutError
"""
OLD = "from types import SimpleNamespace\n__version__ = '1.15.5'\ndata = SimpleNamespace()\n"
UNTIL = "import pathlib, time\nwhile not pathlib.Path({file!r}).exists(): time.sleep(0.02)\n"


class Job:
    """A leader, whose program ends as soon as the file `end` exists, and data tasks."""

    def __init__(self, run_task: Callable, free_port: Callable[[], int], folder: Path) -> None:
        self._run, self._folder = run_task, folder
        self.ports = [free_port() for _ in range(4)]
        beacon, self.dispatcher, *workers = self.ports
        self.feeding = {
            "data_dispatcher": [f"127.0.0.1:{self.dispatcher}"],
            "data_worker": [f"127.0.0.1:{port}" for port in workers],
        }
        self._common = {
            "CLUSTER_KIT_BEACON": f"127.0.0.1:{beacon}",
            "CLUSTER_KIT_LEADER": "worker-0",
            "CLUSTER_KIT_SERVERS": "",
            "CLUSTER_KIT_DATA_SERVICE": f"grpc://127.0.0.1:{self.dispatcher}",
        }

    def leader(self, **variables: object):
        program = self._folder / "leader.py"
        program.write_text(UNTIL.format(file=str(self._folder / "end")))
        spec = {"worker": ["127.0.0.1:1"]}
        return self._run("worker-0", spec, "run", str(program), **self._common, **variables)

    def data_task(self, name: str, toy: str = TOY, **variables: object):
        path = self._folder / "toy"
        path.mkdir(exist_ok=True)
        (path / "tensorflow.py").write_text(toy)
        (path / "grpc.py").write_text(GRPC)
        variables["PYTHONPATH"] = os.pathsep.join([str(IMAGE), str(path)])
        keys = {**self._common, **variables}
        return self._run(name, self.feeding, "data-service", anew=True, **keys)

    def config(self, kind: str, port: int) -> dict:
        *_, last = (self._folder / f"{kind}-{port}").read_text().splitlines()
        return json.loads(last)

    def end(self) -> None:
        (self._folder / "end").touch()


@pytest.fixture
def job(run_task, free_port, tmp_path) -> Job:
    return Job(run_task, free_port, tmp_path)


def test_they_start_what_tensorflow_calls_by_these_names_and_end_with_the_job(
    job, tmp_path, events
):
    leader, worker = job.leader(), job.data_task("data_worker-1")
    dispatcher = job.data_task("data_dispatcher-0")
    read_until(dispatcher, f"tf.data service ready, grpc://127.0.0.1:{job.dispatcher}")
    read_until(worker, "tf.data service ready")
    keys = job.config("dispatcher", job.dispatcher)
    assert (keys["protocol"], keys["fault_tolerant_mode"]) == ("grpc", True)
    assert keys["worker_addresses"] == job.feeding["data_worker"]
    journal = Path(keys["work_dir"])
    assert journal.is_dir()
    assert journal.parent == tmp_path / "data-service"
    keys = job.config("worker", job.ports[3])
    assert keys["dispatcher_address"] == job.feeding["data_dispatcher"][0]
    assert keys["worker_address"] == job.feeding["data_worker"][1]
    job.end()
    assert [leader.wait(30), dispatcher.wait(30), worker.wait(30)] == [0, 0, 0]
    assert not journal.parent.exists()
    for name in ("data_dispatcher-0", "data_worker-1"):
        assert [event["event"] for event in events(name)] == ["ready", "end"]
        assert events(name)[-1]["reason"] == "finished"


def test_a_dispatcher_goes_on_with_its_runs_journal_and_with_no_others(job, tmp_path):
    secret = {"CLUSTER_KIT_BEACON_SECRET": "of this run"}
    (tmp_path / "data-service" / "of an earlier run").mkdir(parents=True)
    leader, first = job.leader(**secret), job.data_task("data_dispatcher-0", **secret)
    read_until(first, "ready")
    journal = Path(job.config("dispatcher", job.dispatcher)["work_dir"])
    assert [*journal.parent.iterdir()] == [journal]
    (journal / "said").touch()
    first.kill()
    first.wait()
    again = job.data_task("data_dispatcher-0", **secret)
    read_until(again, "ready")
    assert job.config("dispatcher", job.dispatcher)["work_dir"] == str(journal)
    assert (journal / "said").exists()
    again.terminate()
    assert again.wait(10) == 143
    assert (journal / "said").exists()  # `cluster-kit start` goes on with it
    job.end()
    assert leader.wait(30) == 0


def nested(folder: Path, depth: int) -> None:
    """Makes directories in each other; their paths are too long for one call."""
    inner = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)


def test_what_a_program_puts_in_the_journals_place_is_not_followed_and_no_error(
    tmp_path, monkeypatch
):
    (kept := tmp_path / "elsewhere" / "kept").mkdir(parents=True)
    (tmp_path / "data-service").symlink_to(kept.parent)
    made = SimpleNamespace(
        DispatcherConfig=lambda **keys: keys, DispatchServer=lambda keys: keys["work_dir"]
    )
    journal = tmp_path / "data-service" / "of this run"
    monkeypatch.setattr(data_service, "journal_of", lambda _task: journal)
    task = SimpleNamespace(address=SimpleNamespace(port=1), beacon=None, cluster={})
    assert data_service.dispatcher(task, made) == str(journal)
    assert kept.is_dir() and journal.is_dir()
    assert not journal.parent.is_symlink()
    (deep := journal.parent / "deep").mkdir()
    nested(deep, 3000)
    try:
        data_service.remove_others(journal)
        data_service.remove(journal.parent)
    finally:
        subprocess.run(["rm", "-rf", journal.parent], check=True)


@pytest.mark.parametrize("how", ["the job ends", "SIGTERM"])
def test_a_worker_that_waits_for_its_dispatcher_can_end(job, events, how):
    leader, worker = job.leader(CLUSTER_KIT_START_DEADLINE_S=60), job.data_task("data_worker-0")
    wait_for_a_follower(job.ports[0])
    if how == "SIGTERM":
        worker.terminate()
    job.end()
    assert (worker.wait(30), leader.wait(30)) == (143 if how == "SIGTERM" else 0, 0)
    assert [event["event"] for event in events("data_worker-0")] == ["end"]


def test_a_tensorflow_without_it_ends_the_job_and_says_what_to_do(job, events):
    leader = job.leader()
    task = job.data_task("data_worker-0", OLD)
    assert (task.wait(30), leader.wait(30)) == (2, 1)
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("failed", ["data_worker-0"])
    assert "TensorFlow 1.15.5 has no tf.data service: data workers need 2.4" in end["message"]


def test_a_dispatcher_that_never_answers_is_named_at_the_start_deadline(job, events):
    leader = job.leader(CLUSTER_KIT_START_DEADLINE_S=0.5)
    assert leader.wait(30) == 6
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("start-deadline", ["data_dispatcher-0"])
    assert f"did not answer within 0.5 s (127.0.0.1:{job.dispatcher}" in end["message"]


def test_data_workers_that_never_register_are_named_at_the_start_deadline(job, events):
    leader = job.leader(CLUSTER_KIT_START_DEADLINE_S=20)
    job.data_task("data_dispatcher-0", CLUSTER_KIT_START_DEADLINE_S=0.5, TOY_WORKERS=0)
    assert leader.wait(30) == 6
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("start-deadline", ["data_worker-0"])
    assert "no data worker has registered with data_dispatcher-0 within 0.5 s" in end["message"]


def test_the_watch_for_the_dispatcher_ends_with_the_program(free_port):
    told: SimpleQueue = SimpleQueue()
    over = threading.Event()
    over.set()
    task = SimpleNamespace(data_service=f"grpc://127.0.0.1:{free_port()}", start_deadline_s=60.0)
    services.watch_data_service(task, told.put, over)
    assert told.empty()


def test_an_address_that_is_none_is_a_broken_contract():
    task = SimpleNamespace(data_service="grpc://nowhere", start_deadline_s=60.0)
    with pytest.raises(ContractError, match="CLUSTER_KIT_DATA_SERVICE"):
        services.watch_data_service(task, print, threading.Event())


def test_their_death_does_not_end_the_job_but_excuses_a_program_that_fails_over_it():
    peers = Peers(frozenset({"worker-1"}), retries=0)
    for _ in range(5):
        assert peers.heard(Left("data_worker-0", LOST)) is None
    assert peers.lost() == "data_worker-0 was lost"
    peers.begin_attempt()
    assert peers.lost() == ""


def test_their_silence_is_told_for_the_host_to_help_and_never_ends_the_job(tmp_path):
    file = tmp_path / "progress.jsonl"
    silent = SilentTasks(10.0, Progress(file), "chief-0")
    for seconds in (11, 12 + HELP_S, 500):
        assert silent.heard(Silent("data_worker-0", seconds)) is None
    (event,) = [json.loads(line) for line in file.read_text().splitlines()]
    assert (event["event"], event["of"]) == ("silent", "data_worker-0")


def test_their_names_are_names_of_tasks_in_lines_and_events():
    assert decode(b"hello data_worker-0 1f").task == "data_worker-0"
    assert decode_event("silent", {"of": "data_dispatcher-0"}).of == "data_dispatcher-0"


def test_a_run_without_a_secret_has_no_journal(tmp_path):
    task = read_task({"CLUSTER_KIT_OUTPUT": str(tmp_path), "CLUSTER_KIT_START_DEADLINE_S": "0"})
    with pytest.raises(ServerError, match="no secret"):
        data_service.journal_of(task)
