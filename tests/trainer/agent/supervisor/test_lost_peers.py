"""A peer that is lost, never starts, or fails: who is named, and whether the leader tries again."""

from __future__ import annotations

import time

import pytest
from pairs import (
    HAS_BEEN_HEARD,
    IS_HERE,
    ONCE_THE_OTHER_IS_HERE,
    PAIR,
    UNTIL_DONE,
    lose,
    start,
)
from waiting import wait_for


def test_a_peer_that_never_starts_is_named_at_the_start_deadline(
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
    assert "1 of 2 tasks that run the program did not appear within 0.5 s" in end["message"]


def test_a_failure_that_the_program_declares_final_is_not_retried(
    run_task, free_port, tmp_path, events
):
    """A training that ended, but whose result is not good enough: a lost peer is not the reason."""
    leader = (
        "mail = pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX'])\n"
        "while not (here / 'lost').exists(): time.sleep(0.02)\n"
        "(mail / 'final').touch()\n"
        "sys.exit(5)\n"
    )
    port = free_port()
    led, followed, _ = start(
        run_task, free_port, tmp_path, leader, UNTIL_DONE, port=port, CLUSTER_KIT_RETRIES=1
    )
    lose(followed, tmp_path, port)
    assert led.wait(60) == 5
    kinds = [event["event"] for event in events("worker-0") if event["event"] != "ready"]
    assert kinds == ["start", "failure", "end"]


def test_the_leaders_program_restarts_when_it_fails_because_of_a_lost_peer(
    run_task, free_port, tmp_path, events
):
    leader = (
        "(here / 'attempts').open('a').write('x')\n"
        "while (here / 'attempts').read_text() == 'x':\n"
        "    time.sleep(0.02)\n"
        "    if (here / 'lost').exists(): sys.exit(1)\n"
    )
    port = free_port()
    led, followed, again = start(
        run_task, free_port, tmp_path, leader, UNTIL_DONE, port=port, CLUSTER_KIT_RETRIES=1
    )
    wait_for((tmp_path / "attempts").exists)
    lose(followed, tmp_path, port)
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


def test_a_peer_that_failed_by_itself_is_blamed_if_the_leader_fails_because_of_it(
    run_task, free_port, tmp_path, events
):
    leader = f"{HAS_BEEN_HEARD}sys.exit(1)"
    follower = f"{IS_HERE}print('shapes'); sys.exit(7)"
    led, followed, _ = start(run_task, free_port, tmp_path, leader, follower, CLUSTER_KIT_RETRIES=2)
    assert led.wait(60) == 1
    assert followed.wait(60) == 7
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("failed", ["worker-1"])
    assert end["message"] == "worker-1: the program ended with exit code 7"


def test_a_peer_that_ended_before_the_leader_is_named_if_the_leader_fails_because_of_it(
    run_task, free_port, tmp_path, events
):
    leader = f"{HAS_BEEN_HEARD}sys.exit('UnavailableError: Connection reset by peer')"
    led, followed, _ = start(run_task, free_port, tmp_path, leader, IS_HERE, CLUSTER_KIT_RETRIES=2)
    assert led.wait(60) == 1
    assert followed.wait(60) == 0
    assert "(worker-1 had already ended, with 0: " in events("worker-0")[-1]["message"]


def test_a_leader_that_was_killed_is_blamed_although_its_peer_fails_for_good(
    run_task, free_port, tmp_path, events
):
    leader = f"{HAS_BEEN_HEARD}(here / 'killed').touch(); os.kill(os.getpid(), signal.SIGABRT)"
    follower = (
        f"{IS_HERE}while not (here / 'killed').exists(): time.sleep(0.02)\n"
        "time.sleep(0.3); sys.exit('UnavailableError: Connection reset by peer')"
    )
    led, followed, _ = start(run_task, free_port, tmp_path, leader, follower)
    assert (led.wait(60), followed.wait(60)) == (134, 1)
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("failed", ["worker-0"])
    assert end["message"].startswith("the program was killed by SIGABRT (after it, worker-1: ")


def test_a_peer_without_retries_ends_a_job_that_would_wait_for_it(
    run_task, free_port, tmp_path, events
):
    began = time.monotonic()
    led, followed, _ = start(run_task, free_port, tmp_path, "time.sleep(60)", "sys.exit(7)")
    assert (led.wait(60), followed.wait(60)) == (1, 7)
    assert time.monotonic() - began < 30
    assert events("worker-0")[-1]["tasks"] == ["worker-1"]


def test_a_lost_peer_that_does_not_return_is_named_at_the_start_deadline(
    run_task, free_port, tmp_path, events
):
    leader = (
        "(here / 'attempts').open('a').write('x')\n"
        "while (here / 'attempts').read_text() != 'x' or not (here / 'lost').exists():\n"
        "    time.sleep(0.02)\n"
        "sys.exit(1)\n"
    )
    follower = "(here / 'pid').write_text(str(os.getppid())); time.sleep(30)"
    port = free_port()
    led, followed, _ = start(
        run_task, free_port, tmp_path, leader, follower, port=port,
        CLUSTER_KIT_RETRIES=3, CLUSTER_KIT_START_DEADLINE_S=2.5,
    )  # fmt: skip
    wait_for((tmp_path / "attempts").exists)
    lose(followed, tmp_path, port)
    assert led.wait(60) == 6
    end = events("worker-0")[-1]
    assert (end["reason"], end["tasks"]) == ("start-deadline", ["worker-1"])
    assert "after it was started again" in end["message"]


MISTAKEN = (
    "mail = pathlib.Path(os.environ['CLUSTER_KIT_MAILBOX'])\n"
    "(mail / 'last-words').write_text('a.toml: 1 problem\\n  {key} = 1: no such key')\n"
    "sys.exit(2)\n"
)


@pytest.mark.parametrize(("key", "blamed"), [("x", []), ("y", ["worker-1"])])
def test_a_peers_message_of_several_lines_arrives_unchanged(
    run_task, free_port, tmp_path, events, key, blamed
):
    """If all peers have the same error, the leader reports it for all."""
    leader = ONCE_THE_OTHER_IS_HERE + MISTAKEN.format(key=key)
    follower = IS_HERE + MISTAKEN.format(key="x")
    led, _, _ = start(run_task, free_port, tmp_path, leader, follower, CLUSTER_KIT_RETRIES=1)
    assert led.wait(60) == 2
    end = events("worker-0")[-1]
    assert end["tasks"] == blamed
    assert end["message"].splitlines()[1] == "  x = 1: no such key"
