"""Progress files: every line once, half lines later, and whatever a user's program writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_kit.observe.progress import ProgressReader


def line(time: float, event: str, **fields: object) -> str:
    return json.dumps({"time": time, "event": event, **fields}) + "\n"


def test_each_entry_is_handed_out_once_and_in_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "chief-0.jsonl").write_text(line(2, "start") + line(4, "step", step=1))
    (tmp_path / "ps-0.jsonl").write_text(line(3, "ready"))
    reader = ProgressReader(tmp_path, since=0)
    found = [(entry.task, entry.event) for entry in reader.poll()]
    assert found == [("chief-0", "start"), ("ps-0", "ready"), ("chief-0", "step")]
    assert reader.poll() == []
    with (tmp_path / "ps-0.jsonl").open("a") as file:
        file.write(line(5, "end", exit_code=0))
    (entry,) = reader.poll()
    assert (entry.event, entry.fields) == ("end", {"exit_code": 0})


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    file, whole = tmp_path / "chief-0.jsonl", line(1, "step", step=7)
    reader = ProgressReader(tmp_path, since=0)
    file.write_text(whole[:10])
    assert reader.poll() == []
    file.write_text(whole)
    assert [entry.fields for entry in reader.poll()] == [{"step": 7}]


def test_an_earlier_runs_entries_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "chief-0.jsonl").write_text(line(1, "end") + line(11, "start"))
    assert [entry.event for entry in ProgressReader(tmp_path, since=10).poll()] == ["start"]


def test_lines_in_another_form_are_passed_over(tmp_path: Path) -> None:
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
    (tmp_path / "chief-0.jsonl").write_text("\n".join(odd) + "\n" + line(1, "step"))
    with (tmp_path / "chief-0.jsonl").open("ab") as file:
        file.write(b"\xff\xfe\n")
    assert [entry.event for entry in ProgressReader(tmp_path, since=0).poll()] == ["step"]


def test_what_is_no_file_and_what_is_not_there_yet_is_no_error(tmp_path: Path) -> None:
    assert ProgressReader(tmp_path / "later", since=0).poll() == []
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "ps-0.jsonl").write_text(line(1, "ready"))
    assert [entry.task for entry in ProgressReader(tmp_path, since=0).poll()] == ["ps-0"]


def test_a_file_with_nothing_new_is_not_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_text(line(1.0, "step"))
    (tmp_path / "b.jsonl").write_text(line(2.0, "step"))
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    opened: list[str] = []
    really = Path.open

    def counted(path: Path, *arguments: Any, **options: Any) -> Any:
        opened.append(path.name)
        return really(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", counted)
    reader = ProgressReader(tmp_path)
    assert len(reader.poll()) == 2
    (tmp_path / "b.jsonl").write_bytes((line(2.0, "step") + line(3.0, "step")).encode())
    opened.clear()
    assert [entry.time for entry in reader.poll()] == [3.0]
    assert opened == ["b.jsonl"]
