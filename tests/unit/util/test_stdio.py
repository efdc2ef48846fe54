"""Output whose reader has ended is dropped, and the run continues."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
from rich.console import Console

from cluster_kit import __main__
from cluster_kit.cli import new, up
from cluster_kit.show.view import LiveView, PlainView
from cluster_kit.util import stdio
from cluster_kit.util.stdio import lasting
from tests.unit.command_line import Cli

LEAVE = stdio.leave
NAME_FULL_DISK = stdio.name_full_disk


@pytest.fixture
def closed() -> Iterator[TextIO]:
    """Returns the writing end of a pipe whose reader has ended, as `head` does."""
    reading, writing = os.pipe()
    with open(writing, "w", buffering=1, encoding="utf-8", closefd=False) as stream:
        os.close(reading)
        yield lasting(stream)
    os.close(writing)


def test_a_closed_pipe_is_replaced_and_later_output_is_dropped(closed: TextIO) -> None:
    for _ in range(3):
        print("said", file=closed, flush=True)
    os.write(closed.fileno(), b"so can a program that is started from here")


@pytest.mark.parametrize("view", [PlainView, LiveView])
def test_a_view_continues_without_a_reader(
    closed: TextIO, view: type[PlainView | LiveView]
) -> None:
    story = view(Console(file=closed, force_terminal=view is LiveView))
    story.phase("planning")
    story.log("chief-0", "epoch 1")
    story.close()


def test_a_stream_that_was_closed_before_the_start_is_opened_on_its_own_descriptor() -> None:
    """In a child process: the descriptors of this one belong to pytest."""
    if not (child := os.fork()):
        for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
            os.close(descriptor)
            setattr(sys, name, None)
        stdio.open_closed()
        print("dropped", flush=True)
        opened = [Path(f"/proc/self/fd/{number}").readlink() for number in range(3)]
        right = sys.stdin.read() == "" and opened == [Path(os.devnull)] * 3
        os._exit(0 if right and all(os.get_inheritable(number) for number in range(3)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_full_disk_below_stdout_is_an_error_without_a_traceback(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    stream = io.TextIOWrapper(io.BufferedWriter(io.FileIO(full, "w", closefd=False)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        NAME_FULL_DISK()
        with pytest.raises(stdio.DiskFull) as raised:
            print("said", flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), full)  # its buffer is written when it closes

    def fails() -> None:
        raise raised.value

    monkeypatch.setattr(new, "json_schema", fails)
    ended = cli("schema")
    assert (ended.code, ended.out) == (3, "")
    assert "error: stdout cannot be written: No space left on device" in ended.err


def test_a_run_continues_if_the_disk_of_its_log_is_full(capfd: pytest.CaptureFixture[str]) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        stream = lasting(full)
        for _ in range(2):
            print("said", file=stream, flush=True)
    assert capfd.readouterr().err.count("No space left on device; this command continues") == 1


def test_output_with_a_reader_arrives() -> None:
    reading, writing = os.pipe()
    with open(writing, "w", encoding="utf-8") as stream:  # noqa: PTH123
        print("süß", file=lasting(stream))
        assert os.read(reading, 100).decode() == "süß\n"
    os.close(reading)


def test_a_stream_without_a_descriptor_is_not_changed() -> None:
    memory = io.StringIO()
    assert lasting(memory) is memory


def test_up_continues_without_its_reader(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only for verbs that do more than print: `logs -f | head` shall end with head."""
    done: list[str] = []
    monkeypatch.setattr(stdio, "outlive_readers", lambda: done.append("lasting"))
    monkeypatch.setattr(up, "launch", lambda *_, **__: done.append("launched") or sys.exit(0))
    cli("up", "demo")
    assert done == ["lasting", "launched"]
    cli("render", "demo")
    assert len(done) == 2


def test_a_command_ends_at_once_with_its_code_and_all_its_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An interpreter that shuts down while a thread prints may abort with 134."""
    outputs: list[object] = []

    class Stream(io.StringIO):
        def flush(self) -> None:
            outputs.append("flushed")

    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    monkeypatch.setattr(sys, "stderr", Stream())
    monkeypatch.setattr(os, "_exit", outputs.append)
    LEAVE(5)
    assert outputs == ["flushed", 5]


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (SystemExit(), 0),
        (SystemExit(5), 5),
        (SystemExit("words"), 1),
        (KeyError("a bug"), 1),
        (None, 0),
    ],
)
def test_the_exit_code_is_the_given_one(
    raised: BaseException | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> None:
        if raised is not None:
            raise raised

    assert __main__._exit_code(run) == code
    output = capsys.readouterr().err
    assert ("words" in output) == (str(raised) == "words")
    assert ("Traceback" in output) == isinstance(raised, KeyError)
