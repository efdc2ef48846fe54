"""How programs that run in parallel end: before another one, when told to, or with the job."""

from __future__ import annotations

import time

import pytest
from connected import wait_for_a_follower
from pairs import HAS_BEEN_HEARD, IS_HERE, MARK, PAIR, start
from waiting import wait_for


def test_a_peer_that_has_finished_may_end(run_task, free_port, tmp_path, events):
    led, followed, _ = start(run_task, free_port, tmp_path, HAS_BEEN_HEARD, IS_HERE)
    assert (followed.wait(60), led.wait(60)) == (0, 0)


def test_a_peer_that_finishes_before_its_leader_starts_still_reports_it(
    run_task, free_port, tmp_path, events
):
    common = {"CLUSTER_KIT_BEACON": f"127.0.0.1:{free_port()}"}
    for name, text in (("leader", "time.sleep(1)"), ("follower", "(here / 'done').touch()")):
        (tmp_path / f"{name}.py").write_text(MARK + text)
    followed = run_task("worker-1", PAIR, "run", str(tmp_path / "follower.py"), **common)
    wait_for((tmp_path / "done").exists)
    time.sleep(0.3)
    led = run_task("worker-0", PAIR, "run", str(tmp_path / "leader.py"), **common)
    assert (followed.wait(60), led.wait(60)) == (0, 0)


@pytest.mark.parametrize("leaders_code", [0, 1])
def test_a_peer_that_ends_after_its_leader_ends_at_once(
    run_task, free_port, tmp_path, leaders_code
):
    at_the_end = "while not (here / 'end').exists(): time.sleep(0.01)\n"
    leader, follower = f"{at_the_end}sys.exit({leaders_code})", f"{at_the_end}time.sleep(0.8)"
    port = free_port()
    led, followed, _ = start(run_task, free_port, tmp_path, leader, follower, port=port)
    wait_for_a_follower(port)
    (tmp_path / "end").touch()
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


def test_a_peer_that_fails_because_the_job_ended_has_not_failed(
    run_task, free_port, tmp_path, events
):
    follower = IS_HERE + (
        "leaders = here / 'progress' / 'worker-0.jsonl'\n"
        "while not leaders.exists() or 'end' not in leaders.read_text(): time.sleep(0.01)\n"
        "sys.exit(1)\n"
    )
    led, followed, _ = start(run_task, free_port, tmp_path, HAS_BEEN_HEARD, follower)
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
    assert time.monotonic() - began < 10


def test_a_saving_program_gets_time_and_followers_are_informed(run_task, tmp_path, events):
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
    assert task.wait(60) == 143
    assert (tmp_path / "saved").exists()
