"""A command whose output is shown: on a terminal directly, elsewhere through our own stderr."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest

from cluster_kit.util import process
from cluster_kit.util.process import TIMED_OUT, run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class FakeChild:
    """Replaces a started program that prints one line."""

    returncode = 0

    def __init__(self, _command: list[str], **options: Any) -> None:
        FakeChild.options = options
        self.stdout = io.StringIO("building\n") if options["stdout"] == subprocess.PIPE else None

    options: dict[str, Any]

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        return (self.stdout.read() if self.stdout else None), None


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", FakeChild)


def test_without_a_terminal_output_goes_through_our_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["true"], show=True).ok
    assert FakeChild.options["stderr"] == subprocess.STDOUT
    assert capsys.readouterr().err == "building\n"


def test_on_a_terminal_the_command_writes_there_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    run(["true"], show=True)
    assert FakeChild.options["stdout"] is FakeChild.options["stderr"] is None


def test_output_that_is_not_shown_is_captured(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["true"]).output == "building\n"
    assert capsys.readouterr().err == ""


def test_a_command_that_does_not_end_in_time_is_ended_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Late(FakeChild):
        def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
            raise subprocess.TimeoutExpired("docker", timeout or 0.0)

    ended: list[object] = []
    monkeypatch.setattr(subprocess, "Popen", Late)
    monkeypatch.setattr(process, "_end", ended.append)
    done = run([sys.executable, "-c", ""], timeout_s=30)
    assert (done.ok, done.code, len(ended)) == (False, TIMED_OUT, 1)
    assert done.tail() == f"{sys.executable} did not end within 30 s"
