"""Logs of running tasks, and of tasks that have ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster_kit.errors import EngineError, UsageError
from cluster_kit.serve import logs
from cluster_kit.serve.logs import Logs
from tests.unit.serve.made_up import MadeUp


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    monkeypatch.setattr("cluster_kit.serve.site.GLANCE_S", 0.0)
    one = MadeUp(tmp_path)
    one.said = {"chief-0": ["begins", "step 1", "step 2"], "worker-0": ["a \x1b[2Jworker"]}
    return one


def texts(answer: dict[str, Any]) -> list[str]:
    return [f"{task}: {text}" for _, task, text in answer["lines"]]


def test_a_log_is_sent_once_and_then_only_new_lines(made: MadeUp) -> None:
    read = Logs(made.site).read
    first = read("demo", "", "chief-0", "", "")
    assert texts(first) == ["chief-0: begins", "chief-0: step 1", "chief-0: step 2"]
    assert first["goes_on"] and first["tasks"] == [task.name for task in made.cluster.tasks]
    again = read("demo", made.run.path.name, "chief-0", first["next"], "")
    assert again["lines"] == [] and again["next"] == first["next"]


def test_logs_of_all_tasks_are_merged_by_time(made: MadeUp) -> None:
    told = texts(Logs(made.site).read("demo", "", "", "", ""))
    assert told[:2] == ["chief-0: begins", "worker-0: a worker"], "and steer no terminal"


def test_a_progress_bar_is_sent_in_its_last_state(made: MadeUp) -> None:
    made.said["chief-0"] = ["\r  0%\r 50%\r100%"]
    read = Logs(made.site).read
    assert texts(read("demo", "", "chief-0", "", "")) == ["chief-0: 100%"]
    made.over()
    assert texts(read("demo", made.run.path.name, "chief-0", "", "")) == ["chief-0: 100%"]


def test_one_stream_serves_all_pages(made: MadeUp) -> None:
    all_ = Logs(made.site)
    for _ in range(3):
        all_.read("demo", "", "chief-0", "", "")
    assert made.asked.count("follow") == 1


def test_the_search_ignores_case(made: MadeUp) -> None:
    assert texts(Logs(made.site).read("demo", "", "chief-0", "", "STEP 2")) == ["chief-0: step 2"]


def test_only_the_newest_lines_are_sent(made: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_SENT", 2)
    told = Logs(made.site).read("demo", "", "chief-0", "", "")
    assert texts(told) == ["chief-0: step 1", "chief-0: step 2"] and told["left_out"] == 1


@pytest.mark.parametrize("after", ["nonsense", "a:b", ":", "id:99x", "saved"])
def test_an_invalid_position_means_the_start(made: MadeUp, after: str) -> None:
    assert len(Logs(made.site).read("demo", "", "chief-0", after, "")["lines"]) == 3


def test_a_log_that_no_page_reads_is_not_followed(
    made: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_ = Logs(made.site)
    all_.read("demo", "", "chief-0", "", "")
    (log,) = all_._logs.values()
    monkeypatch.setattr(logs, "IDLE_S", -1.0)
    with pytest.raises(EngineError):
        log._take("chief-0", "2026 one more")
    assert log.over
    all_.read("demo", "", "chief-0", "", "")
    assert made.asked.count("follow") == 2


def test_saved_logs_are_sent_once(made: MadeUp) -> None:
    made.over()
    read = Logs(made.site).read
    first = read("demo", made.run.path.name, "chief-0", "", "step")
    assert texts(first) == ["chief-0: step 1", "chief-0: step 2"]
    assert not first["goes_on"] and first["next"] == "saved"
    assert read("demo", made.run.path.name, "chief-0", "saved", "")["lines"] == []


def test_the_log_of_a_task_whose_container_was_removed_before_the_others_is_sent(
    made: MadeUp,
) -> None:
    """The page got a 404 then, and showed that there was no such log."""
    states = dict(made.states)
    made.over()
    made.states = {name: state for name, state in states.items() if name != "chief-0"}
    told = Logs(made.site).read("demo", "", "chief-0", "", "step")
    assert texts(told) == ["chief-0: step 1", "chief-0: step 2"]
    with pytest.raises(UsageError, match="no log of chief-7"):
        Logs(made.site).read("demo", "", "chief-7", "", "")


@pytest.mark.parametrize(
    ("cluster", "run", "task", "says"),
    [
        ("demo", "", "chief-7", "no log of chief-7 in demo"),
        ("demo", "20200101-000000", "", "no run 20200101-000000 of demo here"),
        ("demo", "..", "", "no run .. of demo here"),
        ("..", "runs", "", "no run runs of .. here"),
        ("nope", "latest", "", "no run latest of nope here"),
    ],
)
def test_missing_tasks_and_logs(made: MadeUp, cluster: str, run: str, task: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        Logs(made.site).read(cluster, run, task, "", "")
    assert error.value.message == says


@pytest.mark.parametrize("after", ["id:" + "9" * 5000, "id:\u0663", "id:-1", "id:"])
def test_an_unknown_number_is_ignored(made: MadeUp, after: str) -> None:
    assert len(Logs(made.site).read("demo", "", "chief-0", after, "")["lines"]) == 3
