"""A command whose lines are passed on as they arrive."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest

from cluster_kit.util.process import NOT_FOUND, stream

DRAWN = b"".join(b"%d %%\r" % number for number in range(500))


class FakeChild:
    """A progress bar that is drawn again and again, and a last line that is not UTF-8."""

    returncode = 3

    def __init__(self, *_: Any, **options: Any) -> None:
        assert options["start_new_session"] and options["stderr"] == subprocess.STDOUT
        self.stdout = io.BytesIO(DRAWN + b"\r\n\ndone \xff\n")

    def wait(self) -> int:
        return self.returncode


def test_repeated_drawings_are_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", FakeChild)
    lines: list[str] = []
    done = stream([sys.executable], lines.append)
    assert (done.code, lines[0], lines[-1]) == (3, "0 %", "done \ufffd")
    assert len(lines) < 50
    assert done.tail(1) == "done \ufffd"


def test_a_program_that_is_not_installed() -> None:
    lines: list[str] = []
    done = stream(["no-such-program-at-all"], lines.append)
    assert (done.code, lines) == (NOT_FOUND, [])
    assert "command not found" in done.errors
