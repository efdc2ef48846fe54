"""Programs that run side by side: who is lost, who failed, and what the leader makes of it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from trainer.beacon.heard import Joined, Left
from trainer.outcome import Outcome
from trainer.supervisor.peers import Peers

OURS = Outcome(1, "failed", "the connection was lost")
PAIR = {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}
MARK = "import os, sys, time, pathlib, signal\nhere = pathlib.Path(__file__).parent\n"


def start(run_task, free_port, tmp_path: Path, leader: str, follower: str, **variables: object):
    """worker-0 leads with one program, worker-1 follows with the other."""
    common = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", **variables}
    paths = []
    for name, text in (("leader.py", leader), ("follower.py", follower)):
        paths.append(tmp_path / name)
        paths[-1].write_text(MARK + text)
    tasks = [
        run_task(f"worker-{index}", PAIR, "run", str(path), **common)
        for index, path in enumerate(paths)
    ]
    return (*tasks, lambda: run_task("worker-1", PAIR, "run", str(paths[1]), **common))


def wait_for(condition, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.02)


def test_a_peer_that_never_comes_is_named_at_the_start_deadline(
    run_task, free_port, tmp_path, events
):
    (tmp_path / "leader.py").write_text("import time; time.sleep(60)")
    task = run_task(
        "worker-0", PAIR, "run", str(tmp_path / "leader.py"),
        CLUSTER_KIT_BEACON=f"127.0.0.1:{free_port()}", CLUSTER_KIT_START_DEADLINE_S=0.5,
    )  # fmt: skip
    assert task.wait(60) == 6
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("start-deadline", ["worker-1"])
    assert "1 of 1 tasks that run the program did not appear within 0.5 s" in end["message"]


def test_a_program_that_says_that_its_failure_is_final_is_not_tried_again(
    run_task, free_port, tmp_path, events
):
    """A training to its end, whose result is not good enough: a lost peer is not the reason."""
    leader = (
        "mail = pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX'])\n"
        "while not (here / 'lost').exists(): time.sleep(0.02)\n"
        "(mail / 'final').touch()\n"
        "sys.exit(5)\n"
    )
    follower = (
        "(here / 'pid').write_text(str(os.getppid()))\n"
        "while not (here / 'done').exists(): time.sleep(0.02)\n"
    )
    led, followed, _ = start(run_task, free_port, tmp_path, leader, follower, CLUSTER_KIT_RETRIES=1)
    wait_for((tmp_path / "pid").exists)
    time.sleep(0.6)  # the longest pause between two attempts to reach the beacon
    followed.kill()
    followed.wait()
    (tmp_path / "lost").touch()
    assert led.wait(60) == 5
    kinds = [event["event"] for event in events("worker-0") if event["event"] != "ready"]
    assert kinds == ["start", "failure", "end"]


def test_the_leaders_program_starts_again_when_it_fails_over_a_lost_peer(
    run_task, free_port, tmp_path, events
):
    leader = (
        "(here / 'attempts').open('a').write('x')\n"
        "while (here / 'attempts').read_text() == 'x':\n"
        "    time.sleep(0.02)\n"
        "    if (here / 'lost').exists(): sys.exit(1)\n"
    )
    follower = (
        "(here / 'pid').write_text(str(os.getppid()))\n"
        "while not (here / 'done').exists(): time.sleep(0.02)\n"
    )
    led, followed, again = start(
        run_task, free_port, tmp_path, leader, follower, CLUSTER_KIT_RETRIES=1
    )
    wait_for((tmp_path / "pid").exists)
    wait_for((tmp_path / "attempts").exists)
    time.sleep(0.6)  # the longest pause between two attempts to reach the beacon
    followed.kill()
    followed.wait()
    (tmp_path / "lost").touch()
    wait_for(lambda: any(e["event"] == "failure" for e in events("worker-0")))
    (tmp_path / "lost").unlink()
    (tmp_path / "done").touch()
    second = again()
    assert led.wait(60) == 0
    assert second.wait(60) == 0
    found = events("worker-0")
    assert [e["event"] for e in found if e["event"] != "ready"] == [
        "start", "failure", "retry", "start", "end",
    ]  # fmt: skip
    assert found[-1]["exit_code"] == 0
    assert next(e for e in found if e["event"] == "retry")["reason"] == "worker-1 was lost"


def test_a_peer_that_fails_by_itself_is_to_blame_where_the_leader_falls_over_it(
    run_task, free_port, tmp_path, events
):
    leader = "time.sleep(1.0); sys.exit(1)"
    follower = "print('shapes'); sys.exit(7)"
    led, followed, _ = start(run_task, free_port, tmp_path, leader, follower, CLUSTER_KIT_RETRIES=2)
    assert led.wait(60) == 1
    assert followed.wait(60) == 7
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("failed", ["worker-1"])
    assert end["message"] == "worker-1: the program ended with exit code 7"


def test_a_peer_without_retries_ends_a_job_that_would_wait_for_it(
    run_task, free_port, tmp_path, events
):
    began = time.monotonic()
    led, followed, _ = start(run_task, free_port, tmp_path, "time.sleep(60)", "sys.exit(7)")
    assert (led.wait(60), followed.wait(60)) == (1, 7)
    assert time.monotonic() - began < 6
    assert events("worker-0")[-1]["tasks"] == ["worker-1"]


def test_a_lost_peer_that_does_not_come_back_is_named_at_the_start_deadline(
    run_task, free_port, tmp_path, events
):
    leader = (
        "(here / 'attempts').open('a').write('x')\n"
        "while (here / 'attempts').read_text() != 'x' or not (here / 'lost').exists():\n"
        "    time.sleep(0.02)\n"
        "sys.exit(1)\n"
    )
    follower = "(here / 'pid').write_text(str(os.getppid())); time.sleep(30)"
    led, followed, _ = start(
        run_task, free_port, tmp_path, leader, follower,
        CLUSTER_KIT_RETRIES=3, CLUSTER_KIT_START_DEADLINE_S=2.5,
    )  # fmt: skip
    wait_for((tmp_path / "pid").exists)
    wait_for((tmp_path / "attempts").exists)
    time.sleep(0.6)  # the longest pause between two attempts to reach the beacon
    followed.kill()
    followed.wait()
    (tmp_path / "lost").touch()
    assert led.wait(60) == 6
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("start-deadline", ["worker-1"])
    assert "after it was started again" in end["message"]


def test_what_a_program_writes_beside_itself_is_kept(run_task, tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "program.py").write_text("open('mine.txt', 'w').write('kept')")
    path = str(tmp_path / "code" / "program.py")
    assert run_task("chief-0", {"chief": ["127.0.0.1:1"]}, "run", path).wait(60) == 0
    assert (tmp_path / "mine.txt").read_text() == "kept"


def test_a_peer_that_has_done_its_share_may_go(run_task, free_port, tmp_path, events):
    led, followed, _ = start(run_task, free_port, tmp_path, "time.sleep(0.7)", "pass")
    assert (followed.wait(60), led.wait(60)) == (0, 0)


def test_a_peer_that_is_done_before_its_leader_is_there_still_tells_it(
    run_task, free_port, tmp_path, events
):
    common = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}"}
    for name, text in (("leader", "time.sleep(0.5)"), ("follower", "(here / 'done').touch()")):
        (tmp_path / f"{name}.py").write_text(MARK + text)
    followed = run_task("worker-1", PAIR, "run", str(tmp_path / "follower.py"), **common)
    wait_for((tmp_path / "done").exists)
    time.sleep(0.3)
    led = run_task("worker-0", PAIR, "run", str(tmp_path / "leader.py"), **common)
    assert (followed.wait(60), led.wait(60)) == (0, 0)


MISTAKEN = (
    "mail = pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX'])\n"
    "(mail / 'last-words').write_text('a.toml: 1 problem\\n  {key} = 1: no such key')\n"
    "sys.exit(2)\n"
)


@pytest.mark.parametrize(("key", "blamed"), [("x", []), ("y", ["worker-1"])])
def test_a_peers_message_of_several_lines_arrives_as_it_is(
    run_task, free_port, tmp_path, events, key, blamed
):
    """Where all say the same, the leader says it for all."""
    leader, follower = MISTAKEN.format(key=key), MISTAKEN.format(key="x")
    led, _, _ = start(run_task, free_port, tmp_path, leader, follower, CLUSTER_KIT_RETRIES=1)
    assert led.wait(60) == 2
    end = events("worker-0")[-1]
    assert end["tasks"] == blamed
    assert end["message"].splitlines()[1] == "  x = 1: no such key"


@pytest.mark.parametrize("leaders_code", [0, 1])
def test_a_peer_that_ends_after_its_leader_ends_at_once(
    run_task, free_port, tmp_path, leaders_code
):
    follower = "(here / 'ready').touch(); time.sleep(0.8)"
    leader = f"while not (here / 'ready').exists(): time.sleep(0.01)\nsys.exit({leaders_code})"
    led, followed, _ = start(run_task, free_port, tmp_path, leader, follower)
    assert led.wait(60) == leaders_code
    assert followed.wait(20) == 0


def test_sigterm_ends_a_peer_that_waits_for_its_leader(run_task, free_port, tmp_path):
    (tmp_path / "follower.py").write_text(MARK + "(here / 'done').touch()")
    followed = run_task(
        "worker-1", PAIR, "run", str(tmp_path / "follower.py"),
        CLUSTER_KIT_BEACON=f"127.0.0.1:{free_port()}",
    )  # fmt: skip
    wait_for((tmp_path / "done").exists)
    time.sleep(0.3)
    assert followed.poll() is None
    followed.terminate()
    assert followed.wait(60) == 143


def test_a_peer_that_stumbles_over_the_end_of_the_job_has_not_failed(
    run_task, free_port, tmp_path, events
):
    follower = (
        "leaders = here / 'progress' / 'worker-0.jsonl'\n"
        "while not leaders.exists() or 'end' not in leaders.read_text(): time.sleep(0.01)\n"
        "sys.exit(1)\n"
    )
    led, followed, _ = start(run_task, free_port, tmp_path, "time.sleep(0.5)", follower)
    assert (led.wait(60), followed.wait(60)) == (0, 0)
    end = events("worker-1")[-1]
    assert (end["reason"], end["after_job"]) == ("finished", True)
    assert "after the job's end" in end["message"]


def test_a_program_of_a_ps_ends_with_the_job(run_task, free_port, tmp_path, events):
    cluster = {"worker": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"]}
    common = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}", "CLUSTER_KIT_SERVERS": ""}
    (tmp_path / "ps.py").write_text("import time; time.sleep(60)")
    (tmp_path / "worker.py").write_text("import time; time.sleep(0.5)")
    ps = run_task("ps-0", cluster, "run", str(tmp_path / "ps.py"), **common)
    worker = run_task("worker-0", cluster, "run", str(tmp_path / "worker.py"), **common)
    assert worker.wait(60) == 0
    began = time.monotonic()
    assert ps.wait(60) == 0
    assert time.monotonic() - began < 2


def test_a_saving_program_gets_time_and_followers_hear_of_it(run_task, tmp_path, events):
    saver = (
        "mail = pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX'])\n"
        "def save(*_):\n"
        "    (mail / 'saving').touch(); time.sleep(1.2); (here / 'saved').touch(); os._exit(143)\n"
        "signal.signal(signal.SIGTERM, save); (here / 'ready').touch(); time.sleep(60)\n"
    )
    (tmp_path / "program.py").write_text(MARK + saver)
    task = run_task("chief-0", {"chief": ["127.0.0.1:1"]}, "run", str(tmp_path / "program.py"))
    wait_for((tmp_path / "ready").exists)
    task.terminate()
    assert task.wait(5) == 143
    assert (tmp_path / "saved").exists()


def test_peers_count_by_task_and_in_attempts():
    peers = Peers(frozenset({"worker-1", "worker-10", "worker-2"}), retries=1)
    assert peers.missing == ("worker-1", "worker-2", "worker-10")
    assert peers.heard(Joined("worker-2")) is None
    assert peers.heard(Left("evaluator-0", "lost")) is None
    assert peers.heard(Left("worker-1", "lost")) is None
    assert (peers.lost(), peers.failed(OURS)) == ("worker-1 was lost", None)
    peers.begin_attempt()
    assert peers.lost() == ""
    assert peers.missing == ("worker-1", "worker-10")
    assert peers.heard(Left("worker-2", "failed", "no such file")) is None
    failed = peers.failed(OURS)
    assert failed is not None and failed.tasks == ("worker-2",)
    assert peers.failed(Outcome(2, "failed", "no such file")) is None
    over = peers.heard(Left("worker-1", "lost"))
    assert over is not None
    assert over.message == "worker-1 was lost (2 times; 1 retries)"


CUT_OFF = (
    "tensorflow.python.framework.errors_impl.UnavailableError: Connection reset by peer",
    "InternalError: the coordination service was shut down",
    "CancelledError: step aborted",
)


@pytest.mark.parametrize("words", CUT_OFF)
def test_a_peer_that_only_lost_the_leader_is_not_to_blame(words):
    """Its program fails within the second in which the leader's end is explained."""
    peers = Peers(frozenset({"worker-1"}), retries=1)
    peers.heard(Left("worker-1", "failed", words))
    assert peers.failed(Outcome(1, "failed", "ValueError: shapes differ")) is None
    lost = peers.failed(Outcome(1, "failed", "UnavailableError: Socket closed"))
    assert lost is not None and lost.tasks == ("worker-1",)


def test_a_long_error_that_was_cut_on_its_way_is_still_the_same():
    peers = Peers(frozenset({"worker-1"}), retries=1)
    words = "ValueError: " + "x" * 20_000
    peers.heard(Left("worker-1", "failed", words[:16_000]))
    assert peers.failed(Outcome(1, "failed", words)) is None
