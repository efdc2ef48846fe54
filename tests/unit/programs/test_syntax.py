"""A program that Python cannot compile is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_kit.programs.resolve import resolve
from tests.make import manifest


@pytest.fixture
def default_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLUSTER_KIT_BASE", raising=False)


NO_PYTHON = {
    "a loop over nothing": (b"x = 1\nfor x in\n", "2", "`for x in`", "invalid syntax"),
    "a bracket left open": (b"x = 1\ny = (x,\n", "2", "`y = (x,`", "was never closed"),
    "the print of Python 2": (b"print 'a'\n", "1", "`print 'a'`", "Missing parentheses"),
    "what only the compiler sees": (b"x = 1\n  # two\nreturn x\n", "3", "`return x`", "outside"),
    "another encoding": (b"x = 1\ny = '\xfc'\n", "2", "`y = '\ufffd'`", "utf-8"),
    "a long line": (b"x = [" + b"1, " * 100 + b"\n", "1", "1,…`", "was never closed"),
}


@pytest.mark.parametrize("what", NO_PYTHON)
@pytest.mark.usefixtures("default_base")
def test_a_program_that_is_not_python_is_a_problem(what: str, folder: Path) -> None:
    text, line, value, output = NO_PYTHON[what]
    (folder.parent / "train.py").write_bytes(text)
    (problem,) = resolve(manifest(program="../train.py"), folder).problems
    assert (problem.key_path, problem.line) == ("program", f"train.py:{line}")
    assert problem.value.endswith(value) and output in problem.rule
    python2 = "write print(…), with parentheses"
    assert (python2 if "print" in what else "fix the line") in problem.hint_text()


PASSED_OVER = {
    "no module": ("train", b"PK\x03\x04\0"),
    "too deep for a parser": ("train.py", b"-" * 200_000),
    "too long": ("train.py", b"(" * 1_000_001),
    "a warning": ("train.py", b"x = '\\d' is 1\n"),
    "an encoding that it names": ("train.py", b"# coding: latin-1\nx = '\xfc'\n"),
    "a byte order mark": ("train.py", b"\xef\xbb\xbfx = 1\n"),
}


@pytest.mark.parametrize("what", PASSED_OVER)
@pytest.mark.usefixtures("default_base")
def test_valid_python_is_no_problem(
    what: str, folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    name, text = PASSED_OVER[what]
    (folder.parent / name).write_bytes(text)
    assert not resolve(manifest(program=f"../{name}"), folder).problems
    assert not recwarn.list


def test_syntax_is_not_checked_for_an_image_whose_python_may_be_newer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "train.py").write_text("for x in\n")
    monkeypatch.delenv("CLUSTER_KIT_BASE", raising=False)
    assert not resolve(manifest(program="../train.py", image="mine:1"), folder).problems
    monkeypatch.setenv("CLUSTER_KIT_BASE", "python:3.13")
    assert not resolve(manifest(program="../train.py"), folder).problems
