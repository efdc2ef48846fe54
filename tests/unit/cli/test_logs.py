"""logs of clusters that are up, that have ended, and that never ran."""

from __future__ import annotations

import errno
import io
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cluster_kit.cli import logs
from cluster_kit.platforms.engine import SIDECAR
from cluster_kit.util.terminal import Guard
from tests.unit.cli.looking import FakeEngine, engine, ran
from tests.unit.command_line import Cli
from tests.unit.stories import container

__all__ = ["engine"]


def test_logs_of_an_ended_cluster_are_those_of_its_newest_run(cli: Cli, root: Path) -> None:
    ran(root, success=True)
    result = cli("logs", "demo")
    assert result.code == 0
    assert [line.split() for line in result.out.splitlines()] == [
        ["chief-0", "first"],
        ["ps-0", "20%"],
        ["chief-0", "4"],
    ]
    assert "runs/demo/20250301-100000, ended" in result.err
    assert "these are its logs" in result.err
    assert cli("logs", "demo", "ps-0").out.split() == ["ps-0", "20%"], "a bar's last state"
    found = json.loads(cli("logs", "demo", "ps-0", "--json").out)
    assert found == [{"time": "2025-03-01T10:00:03.0Z", "task": "ps-0", "text": "10%\r20%"}]
    assert "there are: chief-0, ps-0" in cli("logs", "demo", "worker-0").err


def test_a_line_is_printed_whole_and_as_it_is(cli: Cli, root: Path) -> None:
    run, text = ran(root, success=True), f"a\t[bold]b[/] {'long ' * 100}end"
    (run.logs / "chief-0.log").write_text(f"2025-03-01T10:00:02.0Z {text}\n")
    assert cli("logs", "demo", "chief-0").out == f"{'chief-0':>12} {text}\n"


def test_the_tasks_name_is_coloured_only_where_colours_are_shown(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(root, success=True)
    for no_color, name in ((True, "        ps-0 "), (False, "\x1b[36m        ps-0 \x1b[0m")):
        terminal = Console(force_terminal=True, color_system="standard", no_color=no_color)
        monkeypatch.setattr(logs, "out", terminal)
        assert cli("logs", "demo", "ps-0").out == f"{name}20%\n"


def test_json_on_ci_has_the_text_as_it_is(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ran(root, success=True)
    (run.logs / "ps-0.log").write_text("2025-03-01T10:00:03.0Z ##vso[task.complete]\n")
    printed = cli("logs", "demo", "ps-0", "--json").out
    assert Guard()(printed) == printed
    assert json.loads(printed)[0]["text"] == "##vso[task.complete]"


class Arriving(io.RawIOBase):
    """A file that says when something was written into it; `error` is raised then."""

    def __init__(self, error: OSError | None = None) -> None:
        self.arrived, self._error = threading.Event(), error

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if self._error:
            raise self._error
        self.arrived.set()
        return len(data)


def test_a_followed_line_arrives_before_the_next_one(
    engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.up["demo"] = [container("chief-0", id="a")]
    file, arrived = Arriving(), []

    def follow(*_: object, **__: object) -> Iterator[str]:
        yield "2025-03-01T10:00:00.5Z one"
        arrived.append(file.arrived.wait(20))

    monkeypatch.setattr(engine, "follow", follow)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(file)))
    logs.logs("demo", follow=True)
    assert arrived == [True]


def test_a_full_disk_is_noticed_at_the_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(root, success=True)
    file = Arriving(OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(file)))
    with pytest.raises(OSError, match="No space left"):
        logs.logs("demo")
    file._error = None


def test_logs_of_a_run_are_named_by_its_directory_or_as_runs_lists_it(
    cli: Cli, root: Path, engine: FakeEngine
) -> None:
    ran(root, success=True)
    engine.up["demo"] = [container("chief-0", id="a")]
    copied = shutil.copytree(root / "runs/demo/20250301-100000", root / "copied")
    for name in (str(copied), "demo/20250301-100000"):
        result = cli("logs", name, "ps-0")
        assert (result.code, result.out.split(), result.err) == (0, ["ps-0", "20%"], "")
    assert "there are: chief-0, ps-0" in cli("logs", "demo/20250301-100000", "worker-0").err


def test_the_last_lines_of_each_task(
    cli: Cli, root: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(root, success=True)
    shown = cli("logs", "demo", "--tail", "1").out
    assert [line.split() for line in shown.splitlines()] == [["ps-0", "20%"], ["chief-0", "4"]]
    assert cli("logs", "demo", "-n", "0").out == ""
    engine.up["demo"] = [container("ps-0", id="b")]
    two = ("2025-03-01T10:00:00.5Z one", "2025-03-01T10:00:01.5Z ps-0: two")
    monkeypatch.setattr(engine, "lines", lambda _: iter(two))
    assert cli("logs", "demo", "--tail", "1").out.split() == ["ps-0", "two"]
    assert cli("logs", "demo", "--tail", "1", "--follow", "--json").out.count("\n") == 1
    assert "0" in cli("logs", "demo", "--tail", "-1").err


def test_a_task_needs_no_cluster_name_before_it(cli: Cli, engine: FakeEngine) -> None:
    engine.up["demo"] = [container("chief-0", id="a"), container("ps-0", id="b")]
    assert {line.split()[0] for line in cli("logs", "ps-0").out.splitlines()} == {"ps-0"}
    assert "did you mean `chief-0`?" in cli("logs", "chief").err
    assert "task worker1 was not found" in cli("logs", "chief-0", "worker1").err


def test_a_cluster_that_never_ran_has_no_logs(cli: Cli) -> None:
    result = cli("logs", "demo")
    assert (result.code, result.out) == (0, "")
    assert "there is no run of it in runs/demo/" in result.err
    assert cli("logs", "demo", "--json").out == "[]\n"


def test_followed_logs_are_json_lines_with_json(cli: Cli, root: Path, engine: FakeEngine) -> None:
    engine.up["demo"] = [container("chief-0", id="a"), container("ps-0", id="b")]
    result = cli("logs", "demo", "ps-0", "--follow", "--json")
    assert result.code == 0
    assert [json.loads(line) for line in result.out.splitlines()] == [
        {"time": "2025-03-01T10:00:00.5Z", "task": "ps-0", "text": "one"},
        {"time": "2025-03-01T10:00:01.5Z", "task": "ps-0", "text": "\x1b[2Jtwo"},
    ]
    shown = cli("logs", "demo", "--follow").out
    assert sorted(line.split()[0] for line in shown.splitlines()) == ["chief-0"] * 2 + ["ps-0"] * 2
    assert "\x1b" not in shown
    del engine.up["demo"]
    ran(root, success=True)
    ended = cli("logs", "demo", "ps-0", "--follow", "--json").out
    assert json.loads(ended) == {
        "time": "2025-03-01T10:00:03.0Z",
        "task": "ps-0",
        "text": "10%\r20%",
    }


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_following_ends_when_nobody_reads_any_more(
    form: tuple[str, ...], cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.up["demo"] = [container("chief-0", id="a"), container("ps-0", id="b")]
    over = threading.Event()

    def follow(container_id: str, *_: object, **__: object) -> Iterator[str]:
        yield "2025-03-01T10:00:00.5Z one"
        over.wait(20)

    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(engine, "follow", follow)
    monkeypatch.setattr(logs, "_print_line", closed)
    monkeypatch.setattr(logs, "_print_json_line", closed)
    assert cli("logs", "demo", "--follow", *form).code == 1
    over.set()


def test_a_given_name_is_used_whatever_is_up(cli: Cli, engine: FakeEngine) -> None:
    engine.up = {"other": [], "demo": [container("chief-0", id="a")]}
    result = cli("logs", "demo")
    assert result.out.split() == ["chief-0", "a", "says"]
    assert "only cluster" not in result.err


def test_following_ends_with_the_tasks_while_a_sidecar_continues(
    cli: Cli, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = replace(container("x-0"), id="beside", name="cache", role=SIDECAR)
    engine.up["demo"] = [container("ps-0"), beside]
    over, ended = threading.Event(), []

    def follow(container_id: str, *_: object, **__: object) -> Iterator[str]:
        yield f"{container_id} says"
        if container_id == "beside":
            over.wait(20)
            ended.append(container_id)

    monkeypatch.setattr(engine, "follow", follow)
    shown = cli("logs", "demo", "--follow").out
    assert "ps-0 ffffffffffff says" in shown and not ended
    over.set()
