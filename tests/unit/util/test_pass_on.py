"""One command reads the output of another."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from cluster_kit.util.process import CUT_OFF, NOT_FOUND, pass_on

DO = sys.executable
WRITTEN = 9 * 2**20


class Pipe(io.BytesIO):
    """The input of a child; a child that has ended reads no more."""

    closed_after: int | None = None

    def write(self, part: Any) -> int:
        if self.closed_after is not None and self.tell() >= self.closed_after:
            raise BrokenPipeError
        return super().write(part)


class Children:
    """Replaces Popen: `write` and `read` are the two commands' exit codes, `full` the reader's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(subprocess, "Popen", self._start)
        self.codes = {"write": 0, "read": 0}
        self.said = {"write": b"", "read": b""}
        self.ended: list[str] = []
        self.stdin = Pipe()

    def _start(self, command: Sequence[str], **options: Any) -> Any:
        assert options["start_new_session"]
        name, own = command[1], self

        class Child:
            stdout = io.BytesIO(b"x" * WRITTEN)
            stdin = self.stdin
            returncode = self.codes[name]

            def terminate(self) -> None:
                own.ended.append(name)

            def communicate(self) -> tuple[bytes, bytes]:
                return own.said["read"], own.said["write"]

        return Child()


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    return Children(monkeypatch)


def test_everything_is_passed_on_and_counted(children: Children) -> None:
    counted: list[int] = []
    written, read = pass_on([DO, "write"], [DO, "read"], counted.append)
    assert written.ok and read.ok and children.ended == []
    assert len(children.stdin.getvalue()) == WRITTEN == counted[-1]
    assert len(counted) == 3 and counted == sorted(counted)


def test_a_reader_that_ends_ends_the_writer(children: Children) -> None:
    children.stdin.closed_after = 2**22
    children.codes |= {"write": 143, "read": 1}
    children.said["read"] = b"no space left on device\n"
    written, read = pass_on([DO, "write"], [DO, "read"], lambda _count: None)
    assert children.ended == ["write"]
    assert (written.code, read.code, read.tail()) == (CUT_OFF, 1, "no space left on device")


def test_a_failed_writer_is_reported(children: Children) -> None:
    children.codes["write"], children.said["write"] = 1, b"gone"
    written, read = pass_on([DO, "write"], [DO, "read"], lambda _count: None)
    assert (written.code, written.tail(), read.ok) == (1, "gone", True)


def test_a_missing_program_is_reported() -> None:
    assert pass_on(["no-such-program"], [DO, "read"], print)[1].code == NOT_FOUND
