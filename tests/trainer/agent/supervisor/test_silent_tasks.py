"""How the leader treats a silent task."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from trainer.agent.beacon.messages import LOST, HeardAgain, Joined, Left, Silent, Unanswered
from trainer.agent.progress_file import Progress
from trainer.agent.servers import probe
from trainer.agent.supervisor.peers import HELP_S, SilentTasks, Standstill


@pytest.fixture
def file(tmp_path):
    return tmp_path / "progress.jsonl"


@pytest.fixture
def silent(file):
    return SilentTasks(10.0, Progress(file), "chief-0")


def written(file) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_silence_is_reported_once_and_ends_the_job_if_the_task_is_not_restarted(
    silent, file, capsys
):
    for seconds in range(11, 11 + int(HELP_S) - 1):
        assert silent.heard(Silent("worker-1", seconds)) is None
    (event,) = written(file)
    assert (event["event"], event["of"], event["server"]) == ("silent", "worker-1", False)
    assert event["time"] - event["last_heard"] == pytest.approx(11, abs=0.1)
    assert "worker-1 has been silent for 11 s (frozen or cut off; last heard" in (
        capsys.readouterr().err
    )
    ended = silent.heard(Silent("worker-1", 10 + HELP_S))
    assert (ended.reason, ended.exit_code, ended.tasks) == ("silent", 6, ("worker-1",))


def test_a_restarted_task_may_be_silent_again(silent, file):
    for _ in range(2):
        silent.heard(Silent("ps-0", 11))
        silent.moved(Joined("ps-0"))
    assert [event["event"] for event in written(file)] == ["silent", "silent"]


def test_the_end_of_a_silence_is_reported_and_remembered_as_the_cause_of_a_failure(silent, file):
    silent.heard(Silent("worker-1", 11))
    silent.heard(HeardAgain("worker-1", 12.2))
    silent.heard(HeardAgain("worker-2", 4.4))
    assert [(e["event"], e["of"]) for e in written(file)] == [
        ("silent", "worker-1"), ("heard", "worker-1"),
    ]  # fmt: skip
    assert silent.lately({"ps-0": 9.0, "evaluator-0": 9.0}) == [
        "worker-1 was silent for 12 s", "worker-2 was silent for 4 s", "ps-0 was silent for 9 s",
    ]  # fmt: skip


def test_the_silence_of_a_task_that_was_lost_explains_no_later_failure(silent):
    silent.heard(Silent("worker-1", 11))
    silent.heard(HeardAgain("worker-1", 11.2))  # thawed for a moment, since it was killed
    silent.moved(Left("worker-1", LOST, ""))
    silent.moved(Joined("worker-1"))
    assert silent.lately({}) == []


def test_a_silent_evaluator_does_not_delay_or_end_the_job(silent, file):
    assert silent.heard(Silent("evaluator-0", 500)) is None
    assert [event["of"] for event in written(file)] == ["evaluator-0"]


def test_a_server_that_does_not_answer_while_its_process_lives(silent, capsys):
    silent.heard(Silent("ps-0", 21, server=True))
    assert "ps-0's server has not answered for 21 s (its process runs;" in capsys.readouterr().err


def test_a_server_whose_process_was_killed_is_not_said_to_live(silent, file, capsys):
    silent.moved(Left("ps-0", LOST, ""))
    silent.heard(Silent("ps-0", 21, server=True))
    assert "for 21 s (its process has ended; last answer" in capsys.readouterr().err
    ended = silent.heard(Silent("ps-0", 20 + HELP_S, server=True))
    assert (ended.reason, ended.tasks) == ("silent", ("ps-0",))
    assert "for 30 s (its process has ended;" in ended.message
    silent.moved(Joined("ps-0"))
    silent.heard(Silent("ps-0", 21, server=True))
    assert "(its process runs;" in capsys.readouterr().err
    assert [event["gone"] for event in written(file)] == [True, False]


def test_a_server_gets_the_same_time_for_a_restart_as_a_process(silent):
    assert silent.heard(Silent("ps-0", 20.5, server=True)) is None
    assert silent.heard(Silent("ps-0", 29.5, server=True)) is None
    assert silent.heard(Silent("ps-0", 20 + HELP_S, server=True)).tasks == ("ps-0",)


def test_a_cut_between_two_tasks_is_reported_once_and_explains_a_failure(silent, file, capsys):
    for seconds in (10, 11, 12):
        silent.between(Unanswered("ps-0", "worker-1", seconds), {})
    (event,) = written(file)
    assert (event["event"], event["of"], event["by"]) == ("unanswered", "ps-0", "worker-1")
    message = "worker-1 has had no answer from ps-0 for {} s (the network between them is cut; both answer the leader)"  # noqa: E501
    assert capsys.readouterr().err == f"chief-0: {message.format(10)}\n"
    assert silent.cuts() == silent.lately({}) == [message.format(12)]
    assert silent.cut_tasks() == ("worker-1", "ps-0")


@pytest.mark.parametrize("quiet", ["ps-0", "worker-1"])
def test_a_task_that_is_cut_off_from_all_is_not_a_cut_between_two(silent, file, quiet):
    silent.between(Unanswered("ps-0", "worker-1", 10), {quiet: 9.0})
    assert written(file) == silent.cuts() == []
    silent.heard(Silent(quiet, 11))
    silent.between(Unanswered("ps-0", "worker-1", 11), {})
    assert [event["event"] for event in written(file)] == ["silent"]


def test_a_task_whose_process_has_ended_is_not_cut_off_from_another(silent, file, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    silent.moved(Left("data_dispatcher-0", LOST))
    silent.between(Unanswered("data_dispatcher-0", "data_worker-1", 10), {})
    assert written(file) == []
    silent.moved(Joined("data_dispatcher-0"))
    now[0] += 10.5
    silent.between(Unanswered("data_dispatcher-0", "data_worker-1", 30), {})
    (event,) = written(file)
    assert (event["event"], event["seconds"]) == ("unanswered", 10.5)


@pytest.mark.parametrize("back", [Joined("worker-2"), HeardAgain("worker-2", 12)])
def test_a_cut_from_all_that_is_over_was_no_cut_between_two(silent, file, back, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    silent.heard(Silent("worker-2", 11))
    (silent.moved if isinstance(back, Joined) else silent.heard)(back)
    for seconds in (10.4, 11.4):
        now[0] += 1
        silent.between(Unanswered("worker-2", "ps-1", seconds), {})
    assert "unanswered" not in {event["event"] for event in written(file)}
    assert silent.cuts() == []


class NoServer:
    """A Prober of servers that never answer; notes when it connects again."""

    def __init__(self, clock):
        self.clock, self.connected = clock, []

    def __call__(self, _servers):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def answered(self, _timeout_s):
        return []

    def connect_again(self, task):
        self.connected.append((task, self.clock.now))


def test_a_restarted_server_has_its_whole_time_to_answer(silent, monkeypatch):
    """Its process ends at 14 s and begins at 18 s: it has not been silent for 20 s until 38 s."""
    clock, said = SimpleNamespace(now=0.0), []
    monkeypatch.setattr(probe, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(probe, "Prober", prober := NoServer(clock))
    events = {14.0: Left("ps-0", LOST, ""), 18.0: Joined("ps-0")}

    def wait(seconds):
        clock.now += seconds
        if event := events.get(clock.now):
            silent.moved(event)
        return clock.now > 42

    silent.moved(Joined("ps-0"))  # its first start, before the servers are watched
    probe.watch_servers(
        {"ps-0": "10.0.0.9:2222", "ps-1": "10.0.0.8:2222"}, 10.0, silent.moves,
        lambda event: said.append((event.task, clock.now)), SimpleNamespace(wait=wait),
    )  # fmt: skip
    assert min(now for task, now in said if task == "ps-1") == 22
    assert min(now for task, now in said if task == "ps-0") == 40
    assert prober.connected == [("ps-0", 14), ("ps-0", 18)]


def test_a_machine_that_slept_is_remembered_for_as_long_as_tensorflow_may_fail_of_it():
    still = Standstill("worker-0")
    for now in (100.0, 101.0, 104.0, 144.0, 145.0):
        still.look(now)
    told = "worker-0 had stood still for 40 s (the machine slept, or the container was paused)"
    assert still.lately(150.0) == [told]
    for now in (155.0, 160.0, 165.0, 170.0):
        still.look(now)
    assert still.lately(175.0) == []
    assert still.lately(190.0) == [told.replace("40 s", "15 s")], "the watch has not looked yet"
    assert Standstill("worker-0").lately(150.0) == []
