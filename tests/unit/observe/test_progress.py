"""Progress files: every line once, incomplete lines later, and any text of a user's program."""

from __future__ import annotations

import json
import math
import re
import time
import tracemalloc
from collections.abc import Callable, Collection
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.contract.events import Devices, End, Silent, Start, Step, name_of
from cluster_kit.observe import progress
from cluster_kit.observe.progress import (
    KEPT,
    LINES,
    LINES_PER_S,
    LONGEST_LINE,
    LONGEST_TEXT,
    WEIGHT,
    WEIGHT_PER_S,
    Entry,
    ProgressReader,
    entries_of,
    fields_of,
    newest_usage_of,
    weight,
    without_values,
)
from cluster_kit.observe.reconcile import from_containers
from cluster_kit.util.masking import masker
from cluster_kit.util.untrusted import Folder
from tests.entries import as_entry
from tests.unit.stories import container


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "output" / "progress").mkdir(parents=True)
    return tmp_path / "output"


def line(time: float, event: str, **fields: object) -> str:
    return json.dumps({"time": time, "event": event, **fields}) + "\n"


def test_each_entry_is_returned_once_and_in_order_of_time(output: Path) -> None:
    (output / "progress" / "chief-0.jsonl").write_text(line(2, "start") + line(4, "step", step=1))
    (output / "progress" / "ps-0.jsonl").write_text(line(3, "ready"))
    reader = ProgressReader(output, since=0)
    found = [(entry.task, name_of(entry.event)) for entry in reader.poll()]
    assert found == [("chief-0", "start"), ("ps-0", "ready"), ("chief-0", "step")]
    assert reader.poll() == []
    with (output / "progress" / "ps-0.jsonl").open("a") as file:
        file.write(line(5, "end", exit_code=0))
    (entry,) = reader.poll()
    assert entry.event == End(exit_code=0)


def test_an_incomplete_line_waits_for_its_rest(output: Path) -> None:
    file, whole = output / "progress" / "chief-0.jsonl", line(1, "step", step=7)
    reader = ProgressReader(output, since=0)
    file.write_text(whole[:10])
    assert reader.poll() == []
    file.write_text(whole)
    assert [entry.event for entry in reader.poll()] == [Step(step=7)]


def test_of_a_long_usage_file_only_the_end_is_read(output: Path) -> None:
    usage = "".join(line(second, "usage", memory=second) for second in range(1, 5_000))
    for task in ("ps-0", "worker-0"):
        (output / "progress" / f"{task}.usage").write_text(usage)
    of_task = container("ps-0", output=str(output), created=0.0)
    found = newest_usage_of([of_task])
    assert [(entry.task, entry.time) for entry in found] == [
        ("ps-0", second) for second in (4_997, 4_998, 4_999)
    ]
    assert newest_usage_of([]) == newest_usage_of([container("ps-0", output="")]) == []


def test_of_successive_reports_of_steps_only_the_newest_are_read(output: Path) -> None:
    """What a table shows follows from them and from all other events."""
    of_program = [
        line(second, "step", step=second, **({"loss": 1 / second} if second % 100 == 0 else {}))
        for second in range(1, 600)
    ]
    of_kit = [line(second + 0.5, "step", own_steps=second, steps_per_s=1) for second in range(600)]
    one_life = [one for both in zip(of_program, of_kit, strict=False) for one in both]
    lives = [line(0, "start"), *one_life, line(901, "failure"), line(902, "start", attempt=2)]
    again = [line(1_000 + own, "step", own_steps=own, steps_per_s=2) for own in range(1, 300)]
    more = [line(1_700 + own, "step", own_steps=300 + own, steps_per_s=3) for own in range(300)]
    worked = [
        line(1_300 + n, event, functions={"worker-1": n} if event == "worked" else n)
        for n in range(1, 300)
        for event in ("worked", "functions")
    ]
    cut = ['{"time": 2, "event": "step"\n'] * 30
    file = output / "progress" / "worker-0.jsonl"
    file.write_text("".join([*lives, *again, line(1_200, "epoch", epoch=3), *worked, *more, *cut]))
    tasks = [container(name, output=str(output), created=0.0, state="running", started=0.0)
             for name in ("worker-0", "worker-1")]  # fmt: skip
    few, every = entries_of(tasks), ProgressReader(output, tasks=["worker-0", "worker-1"]).poll()
    assert len(every) > 1_500 and len(few) < 200
    assert from_containers(tasks, few) == from_containers(tasks, every)
    view = from_containers(tasks, few)[0]
    assert (view.step, view.loss, view.steps_before, view.own_steps) == (599, 1 / 500, 598, 599)


def test_entries_of_an_earlier_run_are_left_out(output: Path) -> None:
    (output / "progress" / "chief-0.jsonl").write_text(line(1, "end") + line(11, "start"))
    assert [name_of(entry.event) for entry in ProgressReader(output, since=10).poll()] == ["start"]


def test_lines_in_another_form_are_skipped(output: Path) -> None:
    odd = [
        "",
        "hello",
        "[]",
        "3",
        "null",
        '{"time": 1}',
        '{"event": "x"}',
        '{"time": [], "event": 1}',
    ]
    odd += ['{"time": "soon", "event": "x"}', '{"time": NaN, "event": "x"}', "[" * 100_000]
    odd += [f'{{"time": 1{"0" * 400}, "event": "x"}}']
    (output / "progress" / "chief-0.jsonl").write_text("\n".join(odd) + "\n" + line(1, "step"))
    with (output / "progress" / "chief-0.jsonl").open("ab") as file:
        file.write(b"\xff\xfe\n")
    assert [name_of(entry.event) for entry in ProgressReader(output, since=0).poll()] == ["step"]


def test_missing_files_and_other_objects_are_no_error(output: Path) -> None:
    assert ProgressReader(output / "later", since=0).poll() == []
    (output / "progress" / "folder.jsonl").mkdir()
    (output / "progress" / "gone.jsonl").symlink_to(output / "nowhere")
    (output / "progress" / "ps-0.jsonl").write_text(line(1, "ready"))
    assert [entry.task for entry in ProgressReader(output, since=0).poll()] == ["ps-0"]


def test_a_file_without_new_data_is_not_opened_again(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (output / "progress" / "ps-0.jsonl").write_text(line(1.0, "step"))
    (output / "progress" / "ps-1.jsonl").write_text(line(2.0, "step"))
    (output / "progress" / "gone-0.jsonl").symlink_to(output / "nowhere")
    opened: list[str] = []
    really = Folder.opened

    def counted(folder: Folder, name: str) -> int:
        opened.append(name)
        return really(folder, name)

    monkeypatch.setattr(Folder, "opened", counted)
    reader = ProgressReader(output)
    assert len(reader.poll()) == 2
    (output / "progress" / "ps-1.jsonl").write_text(line(2.0, "step") + line(3.0, "step"))
    opened.clear()
    assert [entry.time for entry in reader.poll()] == [3.0]
    assert opened == ["ps-1.jsonl"]


def read(output: Path, text: str, **about: Any) -> list[Any]:
    (output / "progress" / "chief-0.jsonl").write_text(text)
    return ProgressReader(output, **about).poll()


def test_only_tasks_of_the_run_are_read_and_named(output: Path) -> None:
    (output / "progress" / "worker-7.jsonl").write_text(line(1, "ready"))
    told = [
        line(1, "silent", of="worker-0", last_heard=1),
        line(2, "silent", of="worker-7", last_heard=1),
        line(3, "silent", of=["worker-0"]),
        line(4, "end", reason="failed", tasks=["worker-7", "ps-0", 5, {"a": 1}]),
        line(5, "end", reason="failed", tasks={"a": 1}),
        line(6, "devices", of=5, sees="all"),
    ]
    found = read(output, "".join(told), tasks=["chief-0", "worker-0", "ps-0"])
    assert [entry.event for entry in found] == [
        Silent(of="worker-0", last_heard=1),
        End(reason="failed", tasks=("ps-0",)),
        End(reason="failed"),
        Devices(),
    ]


@pytest.mark.parametrize("moment", ["1e999", "-1", "NaN", "1e300", "null", "[]", '"x"', "9e9"])
def test_entries_with_times_outside_the_run_are_skipped(output: Path, moment: str) -> None:
    found = read(output, f'{{"time": {moment}, "event": "step", "step": 1}}\n' + line(1, "ready"))
    assert [name_of(entry.event) for entry in found] == ["ready"]


def test_figures_are_numbers_at_any_depth(output: Path) -> None:
    odd = '{"time": 1, "event": "metrics", "a": NaN, "b": {"c": [1, Infinity, {"d": -1e999}]}}\n'
    odd += '{"time": 2, "event": "metrics", "e": ' + "[" * 50 + "]" * 50 + ', "f": 1e400, "g": 2}\n'
    first, second = read(output, odd)
    assert first.event.values == {"a": None, "b": {"c": [1, None, {"d": None}]}}
    assert (second.event.values["f"], second.event.values["g"]) == (None, 2)
    assert json.dumps(second.event.values, allow_nan=False).count("[") < 10
    step = '{"time": 1, "event": "step", "step": "7", "loss": NaN, "steps_per_s": Infinity}\n'
    (entry,) = read(output, step)
    assert list(fields_of(entry.event)) == ["loss"] and math.isnan(entry.event.loss)


def test_texts_can_be_written_to_a_file(output: Path) -> None:
    (entry,) = read(output, r'{"time": 1, "event": "phase", "name": "\ud800x"}' + "\n")
    assert entry.event.name.encode()
    (entry,) = read(output, line(1, "end", message="x" * 900_000))
    assert len(entry.event.message) == LONGEST_TEXT


def test_a_secret_at_the_end_of_a_truncated_text_is_masked(output: Path) -> None:
    secret = "hunter2-0123456789-abcdefghi"
    for before in range(LONGEST_TEXT - 2 * len(secret), LONGEST_TEXT):
        (entry,) = read(output, line(1, "end", message="x" * before + secret))
        shown = without_values(entry, masker({secret})).event.message
        assert secret[:4] not in shown, before


def test_a_sparse_file_and_a_long_line_take_no_memory(output: Path) -> None:
    file = output / "progress" / "chief-0.jsonl"
    with file.open("wb") as sparse:
        sparse.truncate(3 << 30)
        sparse.seek(0, 2)
        sparse.write(b"\n" + line(1, "ready").encode())
    tracemalloc.start()
    reader = ProgressReader(output)
    assert [name_of(entry.event) for entry in reader.poll()] == ["ready"]
    with file.open("ab") as more:
        more.write(b"x" * (5 << 20))
    assert reader.poll() == []
    with file.open("ab") as more:
        more.write(b"x" * (3 << 20) + b"\n" + line(2, "end").encode())
    assert [name_of(entry.event) for entry in reader.poll()] == ["end"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 << 20
    assert reader.left_out == 2


def test_entries_beyond_the_limit_are_counted(output: Path) -> None:
    text = "".join(line(1000 + i / 1e6, "step", step=i) for i in range(20_000))
    (output / "progress" / "chief-0.jsonl").write_text(text + line(1001, "end", exit_code=0))
    reader = ProgressReader(output, since=1000)
    found = reader.poll()
    assert name_of(found[-1].event) == "end"
    assert KEPT < len(found) < KEPT + 10
    assert reader.left_out == 20_001 - len(found)


def test_an_hour_of_steps_is_kept_whole(output: Path) -> None:
    text = "".join(line(1000 + i, "step", step=i) for i in range(3600))
    assert len(read(output, text, since=1000)) == 3600


def test_a_program_that_writes_fast_for_long_is_read_to_its_end(output: Path) -> None:
    text = "".join(line(1000 + i / 100, "step", step=i) for i in range(10_000))
    found = read(output, text + line(1101, "end", exit_code=0), since=1000)
    assert name_of(found[-1].event) == "end"
    assert KEPT < len(found) < 10_000


def test_only_texts_of_a_program_are_masked() -> None:
    mask = masker({"hunter22", "failed", "chief-0"})
    end = as_entry("chief-0", 1.0, "end", {"reason": "failed", "message": "hunter22 failed"})
    assert without_values(end, mask).event == End(reason="failed", message="*** ***")
    metrics = as_entry("chief-0", 1.0, "metrics", {"of hunter22": ["hunter22", 1]})
    assert without_values(metrics, mask).event.values == {"of ***": ["***", 1]}
    for event, key in (
        ("evaluation", "checkpoint"),
        ("straggling", "cause"),
        ("profiled", "folder"),
    ):
        entry = as_entry("chief-0", 1.0, event, {"of": "chief-0", key: "hunter22"})
        assert getattr(without_values(entry, mask).event, key) == "***"
    own = as_entry("chief-0", 1.0, "hunter22", {"of": "chief-0", "step": 3})
    assert without_values(own, mask) == as_entry(
        "chief-0", 1.0, "***", {"of": "chief-0", "step": 3}
    )


def test_texts_have_no_invisible_characters(output: Path) -> None:
    words = {"of\u202eof": "gpj\u202e.exe", "\u2066a": ["b\u200f"]}
    (output / "progress" / "chief-0.jsonl").write_text(line(1, "metrics", **words))
    (entry,) = ProgressReader(output).poll()
    assert entry.event.values == {"ofof": "gpj.exe", "a": ["b"]}


def test_too_many_large_entries_are_left_out_and_the_end_is_read(output: Path) -> None:
    began = 100.0
    heavy = {f"k{at}": [{}] * 150 for at in range(12)}
    lines = [line(began + 1, "metrics", **{f"{name}_{at}": value for name, value in heavy.items()})
             for at in range(200)]  # fmt: skip
    lines.append(line(began + 2, "metrics", **{f"k{at}": [{}] * 19_000 for at in range(3)}))
    lines += [line(began + 3, "end", exit_code=0, reason="finished"), line(began + 3, "ready")]
    (output / "progress" / "chief-0.jsonl").write_text("".join(lines))
    reader = ProgressReader(output, began, tasks=["chief-0"])
    entries = reader.poll()
    assert [name_of(entry.event) for entry in entries[-2:]] == ["end", "ready"]
    assert sum(weight(fields_of(entry.event)) for entry in entries) <= WEIGHT + 10 * WEIGHT_PER_S
    assert reader.left_out == len(lines) - len(entries) > 100


def test_no_text_of_a_task_can_control_a_terminal(output: Path) -> None:
    escape = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b31m\r\b"
    text = line(1.0, "evaluation", checkpoint=f"a\n{escape}", step=5)
    text += line(2.0, "devices", of="chief-0", sees=[escape], promised=[escape], broken=escape)
    text += line(3.0, "metrics", **{escape: escape})
    (output / "progress" / "chief-0.jsonl").write_text(text)
    printed = repr([fields_of(entry.event) for entry in ProgressReader(output).poll()])
    assert printed.count("red") == 6
    assert not {"\\x1b", "\\x07", "\\x9b", "\\r", "\\x08", "\\n"} & set(
        re.findall(r"\\x..|\\.", printed)
    )


def test_a_line_from_the_future_does_not_count_later(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    lines = line(now, "step", step=1) + line(now + 3600, "step", step=2)
    (output / "progress" / "chief-0.jsonl").write_text(lines)
    monkeypatch.setattr("time.time", lambda: now + 7200)
    reader = ProgressReader(output, since=now - 10)
    assert [entry.event.step for entry in reader.poll()] == [1]
    assert reader.left_out == 1


def flood(output: Path, line: bytes, count: int, began: float) -> None:
    """Write this number of lines, and then the end of a task that began then."""
    with (output / "progress" / "chief-0.jsonl").open("wb") as file:
        for _ in range(count // 1000):
            file.write(line * 1000)
        file.write(json.dumps({"time": began + 1, "event": "end", "exit_code": 0}).encode() + b"\n")


def test_a_line_without_an_end_is_read_in_bounded_time(output: Path) -> None:
    began = time.time() - 2
    tiny = json.dumps({"time": int(began + 1), "event": "x"}).encode() + b"\n"
    for text, count in ((b"1\n", 8_000_000), (b"\n", 16_000_000), (tiny, 400_000)):
        flood(output, text, count, began)
        reader = ProgressReader(output, began, tasks=["chief-0"])
        with pytest.MonkeyPatch.context() as patched:
            parsed: list[bytes] = []
            patched.setattr(progress, "parsed", noting(parsed))
            assert isinstance(reader.poll()[-1].event, End)
            assert len(parsed) < LINES + LINES_PER_S * 3 + 3 * LONGEST_LINE
            parsed.clear()
            with (output / "progress" / "chief-0.jsonl").open("ab") as file:
                file.write(text * 1_000_000 + line(began + 1.5, "end", exit_code=1).encode())
            assert reader.poll()[-1].event == End(exit_code=1)
            assert sum(map(len, parsed)) < LONGEST_LINE + 100, "no more than the end"


def noting(parsed: list[bytes]) -> Callable[..., Entry | None]:
    real = progress.parsed

    def parse(task: str, line: bytes, *names: Collection[str]) -> Entry | None:
        parsed.append(line)
        return real(task, line, *names)

    return parse


def test_a_week_is_read_completely_in_little_memory(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here it is three hours, with a tenth of the usual number of entries per read."""
    monkeypatch.setattr(progress, "AT_ONCE", 1_000)
    began, count = time.time() - 200_000, 10_000
    figures = {"steps_per_s": 10.5, "loss": 0.25}
    with (output / "progress" / "chief-0.jsonl").open("w") as file:
        file.write(line(began, "start", attempt=1))
        file.writelines(line(began + i, "step", step=i, **figures) for i in range(count))
        file.write(line(began + count, "end", exit_code=0))
    tracemalloc.start()
    reader = ProgressReader(output, began, tasks=["chief-0"])
    found = reader.poll()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    assert (found[0].event, found[-1].event) == (Start(attempt=1), End(exit_code=0))
    assert reader.left_out == 0
    steps = [one.event.step for one in found if isinstance(one.event, Step)]
    assert 500 <= len(steps) <= 1_001
    assert (steps[0], steps[-1]) == (0, count - 1)
    assert {after - before for before, after in pairwise(steps[:-1])} == {16}
    assert sum(1 for _ in ProgressReader(output, began, tasks=["chief-0"]).each()) == count + 2


def test_finished_functions_of_workers_are_their_own_steps(output: Path) -> None:
    counts = {"worker-0": 30, "worker-1": 10, "worker-7": 1, "x": 2, "ps-0": "many", "ps-1": -1}
    worked = line(1, "worked", functions=counts, per_s={"worker-0": 3.5})
    (output / "progress" / "chief-0.jsonl").write_text(worked + line(2, "worked", functions=[1]))
    tasks = ["chief-0", "worker-0", "worker-1", "ps-0", "ps-1"]
    reader = ProgressReader(output, since=0, tasks=tasks)
    assert reader.poll() == [
        Entry("worker-0", 1.0, Step(own_steps=30, steps_per_s=3.5, counted=True)),
        Entry("worker-1", 1.0, Step(own_steps=10, counted=True)),
    ]
    assert reader.left_out == 1
