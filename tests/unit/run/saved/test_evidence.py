"""The files of a run are saved once, however often they are saved."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from cluster_kit.platforms.engine import Event
from cluster_kit.run.run_directory import save_events, save_log
from cluster_kit.workspace import RunDirectory, new_run

FIRST = "2025-03-01T10:00:01.000000001Z one\n2025-03-01T10:00:02.000000001Z two\n"
MORE = "2025-03-01T10:00:03.000000001Z three\n"
OTHER = "2025-03-02T10:00:03.000000001Z one\n"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return new_run(tmp_path, datetime(2025, 3, 1))


@pytest.mark.parametrize(
    ("texts", "saved"),
    [
        ([FIRST], FIRST),
        ([FIRST, FIRST], FIRST),
        ([FIRST, FIRST + MORE], FIRST + MORE),
        ([FIRST, OTHER], FIRST + OTHER),
        ([FIRST, OTHER, OTHER + MORE], FIRST + OTHER + MORE),
        ([FIRST, ""], FIRST),
        (["", FIRST], FIRST),
    ],
)
def test_a_log_is_saved_once(run: RunDirectory, texts: list[str], saved: str) -> None:
    for text in texts:
        save_log(run.logs / "ps-0.log", partial(iter, text.splitlines()))
    assert (run.logs / "ps-0.log").read_text() == saved


def test_an_event_is_saved_once(run: RunDirectory) -> None:
    started, died = Event(1.25, "start", "ps-0", None), Event(2.5, "die", "ps-0", 1)
    save_events(run, [started])
    save_events(run, [started, died])
    assert len((run.path / "events.jsonl").read_text().splitlines()) == 2
