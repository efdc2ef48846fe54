"""A stop from outside, such as a requested restart, does not count as one of the leader's
`retries`."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from connected import reached
from waiting import wait_for

from trainer.agent.beacon.messages import FAILED, LOST, Left
from trainer.agent.supervisor.peers import Peers, Stops, stopped_tasks


def end(folder: Path, task: str, reason: str = "stopped", ago: float = 0.0) -> None:
    entry = {"time": time.time() - ago, "event": "end", "exit_code": 143, "reason": reason}
    with (folder / f"{task}.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")


def test_a_task_that_was_stopped_from_outside_is_recognized(tmp_path: Path):
    assert stopped_tasks(tmp_path, 0.0) == frozenset()
    (tmp_path / "worker-0.jsonl").write_text('{\n[]\n{"event": "end", "reason": "stopped"}\n')
    end(tmp_path, "worker-1")
    (tmp_path / "worker-1.jsonl").open("a").write('{"time": 1, "event": "start"}\n')
    end(tmp_path, "worker-2", "failed")
    end(tmp_path, "worker-3", ago=100)
    (tmp_path / "worker-4.jsonl").symlink_to("worker-1.jsonl")
    os.mkfifo(tmp_path / "worker-5.jsonl")
    assert stopped_tasks(tmp_path, time.time() - 10) == {"worker-1"}
    assert stopped_tasks(tmp_path, time.time() - 110) == {"worker-1", "worker-3"}


def test_a_crash_because_of_a_stop_is_excused(tmp_path: Path):
    stops = Stops(tmp_path)
    assert stops.excused("worker-1 was lost") == "worker-1 was lost"
    assert stops.excused("") == ""
    end(tmp_path, "worker-1")
    assert stops.excused("worker-10 was lost") == "worker-10 was lost"
    assert stops.excuses == 0
    excused = stops.excused("ps-0 was lost; worker-1 was lost")
    assert excused == "ps-0 was lost; worker-1 was lost (stopped from outside: worker-1)"
    assert stops.excuses == 1
    stops._began += 100
    assert stops.excused("worker-1 was lost") == "worker-1 was lost"


@pytest.mark.parametrize("stopped", [True, False])
def test_a_peer_may_be_stopped_more_often_than_it_may_fail(tmp_path: Path, stopped: bool):
    peers = Peers(frozenset({"worker-1"}), 1, Stops(tmp_path).lately)
    if stopped:
        end(tmp_path, "worker-1")
    ended = [peers.heard(Left("worker-1", LOST, "")) for _ in range(4)]
    assert [one is None for one in ended] == [True, *[stopped] * 3]
    assert peers.lost() == "worker-1 was lost"
    failed = [peers.heard(Left("worker-1", FAILED, "no")) for _ in range(2)]
    assert failed[-1] is not None


def test_the_leaders_program_restarts_without_using_up_a_retry(
    run_task, free_port, tmp_path, events
):
    """The program fails each time because the user restarts the worker; it has no retry for its own
    failures."""
    cluster = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
    port = free_port()
    common = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{port}", "CLUSTER_KIT_RETRIES": 0}
    here = f"import pathlib, sys, time\nhere = pathlib.Path({str(tmp_path)!r})\n"
    (tmp_path / "leader.py").write_text(
        here + "(here / 'attempts').open('a').write('x')\n"
        "while not (here / 'lost').exists() and not (here / 'done').exists(): time.sleep(0.02)\n"
        "sys.exit((here / 'lost').exists())\n"
    )
    (tmp_path / "follower.py").write_text(
        here + "(here / 'here').touch()\nwhile not (here / 'done').exists(): time.sleep(0.02)\n"
    )
    led = run_task("worker-0", cluster, "run", str(tmp_path / "leader.py"), **common)

    def follow():
        return run_task("worker-1", cluster, "run", str(tmp_path / "follower.py"), **common)

    follower = follow()
    wait_for((tmp_path / "here").exists)
    wait_for(lambda: reached(port))
    time.sleep(1.5)  # It sends its name, and then a message every second.
    follower.terminate()
    follower.wait()
    (tmp_path / "lost").touch()
    wait_for(lambda: any(e["event"] == "failure" for e in events("worker-0")))
    (tmp_path / "lost").unlink()
    second = follow()
    wait_for(lambda: (tmp_path / "attempts").read_text() == "xx")
    (tmp_path / "done").touch()
    assert (led.wait(60), second.wait(60)) == (0, 0)
    found = events("worker-0")
    (retry,) = [e for e in found if e["event"] == "retry"]
    # On a busy machine it is silent for some seconds before it has ended, which is reported, too.
    silent = r"(; worker-1 was silent for \d+ s)?"
    excused = rf"worker-1 was lost{silent} \(stopped from outside: worker-1\)"
    assert re.fullmatch(excused, retry["reason"])
