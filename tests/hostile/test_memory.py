"""Large amounts of everything: the kit's memory and time stay bounded, however many limits a task
reaches at once."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.observe.logs import LONGEST, Shown
from cluster_kit.observe.progress import LAST_LINES, USAGE, ProgressReader
from cluster_kit.observe.usage import sample_of
from cluster_kit.report.facts import edges_of
from cluster_kit.report.page import MOST_CHECKPOINTS, checkpoints_of
from cluster_kit.run.task_exec import _facts
from cluster_kit.serve import logs
from cluster_kit.serve.logs import Logs
from tests.fakes.clock import Clock
from tests.unit.serve.made_up import MadeUp

LONG = "\N{GRINNING FACE}" + "x" * (1 << 20)
"""Python stores each of its characters in four bytes."""


@contextmanager
def at_most(megabytes: int) -> Iterator[None]:
    """Limit the memory of the block to this."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] >> 20
    finally:
        tracemalloc.stop()
    assert peak < megabytes, f"{peak} MB"


@pytest.mark.parametrize(
    "first", ["", "Traceback (most recent call last):", "ERROR:tensorflow:", "\r", "\b"]
)
def test_many_long_lines_of_a_log(first: str) -> None:
    longest = 0

    def line(_task: str, text: str) -> None:
        nonlocal longest
        longest = max(longest, len(text))

    with at_most(60):
        shown = Shown(Clock(), "chief-0", line)
        for number in range(1, 150):
            shown.take(number, f"{first} {chr(number + 200)}{LONG}{first[:1]} the end")
        shown.finish(())
    assert 0 < longest <= LONGEST


def test_the_last_state_of_a_long_progress_bar_is_shown() -> None:
    seen: list[str] = []
    shown = Shown(Clock(), "chief-0", lambda _task, text: seen.append(text))
    shown.take(1, "".join(f"\rstep {number}" for number in range(100_000)))
    assert seen[0].rpartition("\r")[2] == "step 99999"


@pytest.mark.parametrize("run", ["live", "saved"])
def test_a_page_with_logs_of_many_long_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    monkeypatch.setattr("cluster_kit.serve.site.GLANCE_S", 0.0)
    made = MadeUp(tmp_path)
    if run == "live":
        made.said = {"chief-0": [LONG] * 200}
    else:
        made.over()
        made.finish()
        made.run.logs.mkdir(exist_ok=True)
        with (made.run.logs / "chief-0.log").open("w") as file:
            file.writelines(f"2026-03-01T10:00:00Z {LONG}\n" for _ in range(50))
    with at_most(80):
        answer = Logs(made.site).read("demo", "", "chief-0", "", "")
        assert answer["lines"]
        assert sum(len(text) for _, _, text in answer["lines"]) <= logs.MOST_CHARACTERS


def test_many_checkpoints_with_long_names(tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    (output / "model").touch()
    for number in range(20_000):
        name = f"\N{GRINNING FACE}{number:06}"
        os.link(output / "model", output / f"{name}{'n' * (239 - len(name.encode()))}.index")
    with at_most(30):
        found = checkpoints_of(output, 0.0)
    assert len(found) == MOST_CHECKPOINTS and found == sorted(found)
    assert found[-1][1].startswith("\N{GRINNING FACE}019999")


def written(output: Path, name: str, *events: dict[str, Any]) -> None:
    file = output / "progress" / name
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as lines:
        lines.writelines(f"{json.dumps({'time': time.time() - 1, **one})}\n" for one in events)


def test_many_tasks_with_much_output(tmp_path: Path) -> None:
    tasks = [f"worker-{number}" for number in range(20)]
    text = "\N{GRINNING FACE}" + "x" * 15_000
    for task in tasks:
        written(tmp_path, f"{task}.jsonl", *[{"event": "retry", "reason": text}] * 150)
    with at_most(150):
        entries = ProgressReader(tmp_path, tasks=tasks, began=time.time() - 60).poll()
    assert 500 < len(entries) < 20 * 150


def test_bytes_sent_to_unknown_tasks(tmp_path: Path) -> None:
    use = {"event": "usage", "cpu_s": 1, "memory": 1, "rx_bytes": 1, "tx_bytes": 1}
    sent = {f"nobody {number}": 1 for number in range(5_000)} | {"worker-1": 7}
    written(tmp_path, "worker-0.usage", *[{**use, "sent_to": sent}] * 5)
    tasks = ["worker-0", "worker-1"]
    reader = ProgressReader(tmp_path, tasks=tasks, suffix=USAGE, began=time.time() - 60)
    samples = [found for entry in reader.poll() if (found := sample_of(entry))]
    assert [(edge.receiver, edge.bytes) for edge in edges_of(samples)] == [("worker-1", 7)]


def test_floods_of_short_invalid_lines(tmp_path: Path) -> None:
    reader = ProgressReader(tmp_path, tasks=["chief-0"], began=time.time() - 60)
    file = tmp_path / "progress" / "chief-0.jsonl"
    written(tmp_path, file.name, {"event": "step", "step": 1})
    assert len(reader.poll()) == 1
    began = time.process_time()
    for step in range(2, 12):
        with file.open("a") as lines:
            lines.write("{\n" * 500_000)
        written(tmp_path, file.name, {"event": "step", "step": step})
        (entry,) = reader.poll()
        assert entry.event == replace(entry.event, step=step)  # type: ignore[type-var]
    assert reader.left_out > 9 * (500_000 - LAST_LINES)
    assert time.process_time() - began < 10


def test_a_long_answer_that_looks_like_a_profile() -> None:
    with at_most(40):
        assert _facts('{"a":[' + "[]," * 1_000_000 + "[]]}") is None
