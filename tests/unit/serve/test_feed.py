"""The messages to the page of a cluster, from no run to its end and the next run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.observe import user_requests
from cluster_kit.serve import incremental, pages
from cluster_kit.serve.pages import Feed
from cluster_kit.util.untrusted import Folder
from tests.make import cluster
from tests.unit.serve.made_up import BEGAN, MadeUp


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FIND_S", 0.0)
    monkeypatch.setattr("cluster_kit.serve.site.GLANCE_S", 0.0)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[MadeUp]:
    one = MadeUp(tmp_path)
    one.begin()
    yield one
    one.finish()


def messages(told: bytes) -> dict[str, Any]:
    """Returns the data of each kind of message."""
    blocks = [block.split("\n") for block in told.decode().split("\n\n") if block]
    return {
        kind.removeprefix("event: "): json.loads(data.removeprefix("data: "))
        for kind, data in blocks
    }


def settled(one: Feed, made: MadeUp) -> dict[str, Any]:
    """Returns all messages after the engine's events have arrived, which takes a thread."""
    told = messages(one.look())
    for _ in range(2000):
        seen = one._reading._growing.seen if one._reading else None
        if seen is None or len(seen.events) >= len(made.history):
            break
        told |= messages(one.look())
    return told


def test_a_run_is_sent_completely_and_then_only_changes(made: MadeUp) -> None:
    made.say("chief-0", 1.0, "step", step=1, loss=0.5)
    one = Feed(made.site, "demo")
    first = settled(one, made)
    assert first["run"]["run"]["run"] == made.run.path.name
    whole = messages(one.whole())["run"]
    assert whole["now"]["chief-0"]["state"] == "training"
    assert [chart["id"] for chart in whole["run"]["charts"]] == ["loss"]
    assert one.look() == b"", "nothing has come"
    made.say("chief-0", 2.0, "step", step=2, loss=0.25)
    news = messages(one.look())["news"]
    assert set(news) == {"points", "now", "seconds"} and news["now"]["chief-0"]["step"] == 2
    made.happens("worker-0", 3.0, "die", 1)
    news = {}
    for _ in range(2000):
        if news := messages(one.look()):
            break
    marks = next(task for task in news["news"]["run"]["tasks"] if task["name"] == "worker-0")
    assert [mark["text"] for mark in marks["marks"]] == ["ended with exit code 1"]


def test_only_new_data_is_read(made: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Feed(made.site, "demo")
    settled(one, made)
    opened: list[str] = []
    usual = Folder.opened

    def noted(self: Folder, name: str) -> int:
        opened.append(name)
        return usual(self, name)

    monkeypatch.setattr(Folder, "opened", noted)
    one.look()
    assert opened == []
    made.say("worker-1", 4.0, "step", step=1)
    opened.clear()
    one.look()
    assert opened == ["worker-1.jsonl"]


def test_what_a_user_requested_is_no_fault(made: MadeUp) -> None:
    user_requests.write(made.run.path, "kill", ["ps-0"], BEGAN + 5, from_page=True)
    made.happens("ps-0", 5.1, "die", 137)
    one = Feed(made.site, "demo")
    settled(one, made)
    tasks = messages(one.whole())["run"]["run"]["tasks"]
    (facts,) = [task for task in tasks if task["name"] == "ps-0"]
    assert [mark["kind"] for mark in facts["marks"]] == ["asked"]


def test_a_stopped_cluster_is_told_apart_from_one_that_has_ended(made: MadeUp) -> None:
    one = Feed(made.site, "demo")
    settled(one, made)
    assert messages(one.whole())["run"]["stopped"] is False
    tasks = [task.name for task in made.cluster.tasks]
    user_requests.write(made.run.path, "stop", tasks, BEGAN + 5)
    for name in tasks:
        made.happens(name, 6.0, "die", 143)
    assert settled(one, made)["news"]["stopped"] is True


def test_the_end_equals_the_report_of_the_run(made: MadeUp) -> None:
    one = Feed(made.site, "demo")
    settled(one, made)
    made.over(success=False)
    told = messages(one.look())["run"]
    assert told["ended"] and told["run"]["verdict"]["message"] == "it broke"
    assert one.look() == b"" and messages(one.whole())["run"] == told


def test_the_next_run_replaces_the_last(made: MadeUp) -> None:
    one = Feed(made.site, "demo")
    settled(one, made)
    first = made.run.path.name
    made.over()
    one.look()
    made.new_run("run-2")
    made.begin()
    assert messages(one.look())["run"]["run"]["run"] == made.run.path.name != first


def test_a_run_that_is_resumed_in_its_directory_is_another_run(made: MadeUp) -> None:
    from cluster_kit.host import Moment
    from cluster_kit.run.run_directory import Record, write_record

    one = Feed(made.site, "demo")
    settled(one, made)
    made.over(success=False)
    one.look()
    write_record(made.run, Record("run-2", made.cluster, Moment(0.0, 0.0, ""), 2000.0, {}, {}))
    made.id, made.states = "run-2", {task.name: "running" for task in made.cluster.tasks}
    told = messages(one.look())["run"]
    assert "ended" not in told and told["run"]["verdict"]["success"] is None


def test_a_run_whose_engine_was_lost_continues_if_its_tasks_do(made: MadeUp) -> None:
    made.run.outcome.write_text(json.dumps({"id": "run-1", "success": False, "reason": "engine"}))
    told = settled(Feed(made.site, "demo"), made)
    assert "ended" not in told["run"]
    made.states = {}
    assert settled(Feed(made.site, "demo"), made)["run"]["ended"]


def test_a_lost_engine_is_reported_and_the_files_are_read_further(made: MadeUp) -> None:
    one = Feed(made.site, "demo")
    settled(one, made)
    made.lost = True
    assert messages(one.look())["trouble"] == "the engine is gone"
    made.say("chief-0", 5.0, "step", step=9)
    assert messages(one.look())["news"]["now"]["chief-0"]["step"] == 9
    made.lost = False
    assert messages(one.look())["trouble"] == ""


def test_no_value_of_a_secret_is_sent(made: MadeUp) -> None:
    made.secrets = ('hunter"22',)
    made.say("chief-0", 1.0, "phase", name='with hunter"22 in it')
    one = Feed(made.site, "demo")
    settled(one, made)
    assert b"hunter" not in one.whole() and b"with *** in it" in one.whole()


def test_secrets_of_containers_that_started_after_the_page_are_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incremental, "ASK_S", 0.0)
    made = MadeUp(tmp_path, cluster(name="demo", worker=1, role={"worker": {"secrets": ["TOKEN"]}}))
    made.begin()
    everybody, made.states = made.states, {"chief-0": "created"}
    one = Feed(made.site, "demo")
    one.look()
    made.say("chief-0", 1.0, "phase", name="early tok_0123456789")
    one.look()
    assert b"tok_" not in one.whole() and b"early" not in one.whole()
    made.states, made.secrets = everybody, ("tok_0123456789",)
    made.say("chief-0", 2.0, "phase", name="late tok_0123456789")
    settled(one, made)
    assert b"tok_" not in one.whole() and b"late ***" in one.whole()
    made.finish()


def test_a_cluster_that_was_started_without_the_kit_has_states_and_logs(made: MadeUp) -> None:
    made.run.record.unlink()
    told = messages(Feed(made.site, "demo").look())["run"]
    assert "not started by `cluster-kit up`" in told["none"]
    assert told["states"]["chief-0"] == "running"


def test_a_run_that_has_not_started_a_task_says_so(made: MadeUp) -> None:
    """While `up` fetches the data or builds the image, and after a failure of that."""
    made.run.record.unlink()
    made.states = {}
    one = Feed(made.site, "demo")
    assert "or is about to start" in messages(one.look())["run"]["none"]
    made.run.outcome.write_text('{"success": false, "message": "no data"}')
    told = messages(one.look())["run"]["none"]
    assert "no task of demo has started" in told and told.endswith(": failed: no data")


def test_an_unreadable_run_is_reported(made: MadeUp) -> None:
    made.run.record.write_text("{}")
    assert "cannot be read" in messages(Feed(made.site, "demo").look())["run"]["none"]


def test_without_a_run_the_page_waits(made: MadeUp) -> None:
    one = Feed(made.site, "other")
    assert messages(one.look())["run"]["none"].startswith("other is not up")
    assert one.look() == b""


def test_a_run_that_is_removed_meanwhile_is_no_error(made: MadeUp) -> None:
    one = Feed(made.site, "demo")
    settled(one, made)
    made.states = {}
    shutil.rmtree(made.run.path.parent)
    assert "no run of it here" in messages(one.look())["run"]["none"]


def test_checkpoints_are_searched_for_now_and_then(
    made: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(incremental, "checkpoints_of", lambda *found: looked.append(found[0]) or [])
    one = Feed(made.site, "demo")
    settled(one, made)
    for _ in range(5):
        one.look()
    assert len(looked) == 1


def test_the_last_look_misses_nothing(made: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Feed(made.site, "demo")
    settled(one, made)
    monkeypatch.setattr(pages, "FIND_S", 1000.0)
    one._find_at = float("inf")
    made.over()
    assert b"event: run" not in one.look()
    assert messages(one.look(last=True))["run"]["ended"]


def test_a_loss_that_is_not_a_number_is_sent_as_a_word(made: MadeUp) -> None:
    made.say("chief-0", 1.0, "step", step=1, loss=float("nan"))
    one = Feed(made.site, "demo")
    settled(one, made)
    assert messages(one.whole())["run"]["now"]["chief-0"]["loss"] == "nan"
