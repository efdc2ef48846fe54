"""No text printed on CI is a command for its runner, however it is divided into pieces."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_kit.util import stdio
from cluster_kit.util.terminal import SYSTEMS, Guard, in_json, is_ci
from tests.runners import IGNORED, commands

COMMANDS = [
    "::add-mask::e",
    "  \t\u00a0::stop-commands::token",
    "first\n::error file=a,line=1::x",
    "progress\r::warning::x",
    "\ufeff:\u200b:\xadadd-mask::e",
    "chief-0 | ##[error]x",
    "###[group]x",
    "#\u2060#\x00[command]x",
    "x ##vso[task.setvariable variable=a]b",
    "##teamcity[buildStop comment='x']",
    "section_start:1560896352:name[collapsed=true]\r\x1b[0Kheader",
    "a section_end:1560896352:name\r\x1b[0K",
]
PIECES = st.lists(
    st.one_of(
        st.sampled_from([":", "#", "[", "]", " ", "\r", "\n", "::", "##[", "vso", "x", "\x1b[0K"]),
        st.sampled_from(sorted(IGNORED)),
        st.sampled_from(COMMANDS),
        st.text(max_size=3),
    ),
    max_size=30,
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_made_harmless(command: str) -> None:
    assert commands(command), "it is one for the runner"
    safe = Guard()(command)
    assert commands(safe) == [] and safe.replace(" ", "") == command.replace(" ", "")


@given(PIECES)
def test_no_pieces_make_a_command_and_nothing_else_is_changed(pieces: list[str]) -> None:
    guard, text = Guard(), "".join(pieces)
    safe = "".join(guard(piece) for piece in pieces)
    assert commands(safe) == []
    assert safe.replace(" ", "") == text.replace(" ", "")
    if not any(mark in text for mark in (":", "#", "section_")):
        assert safe == text


@pytest.mark.parametrize(
    "usual", ["std::vector<int>::at", "a: b", "# note ## [1]", "chief-0 | 10:00:00 x::y::z", "C#"]
)
def test_text_that_is_no_command_is_unchanged(usual: str) -> None:
    assert Guard()(usual) == usual


def test_a_long_line_takes_linear_time() -> None:
    began = time.process_time()
    for piece in (" ", "\u200b", "#", ":", "#\u200b", "##a", "section_", "\x1c"):
        guard = Guard()
        for _ in range(20):
            guard(piece * 50_000)
    assert time.process_time() - began < 10


def test_a_line_of_invisible_characters_takes_linear_time() -> None:
    began = time.process_time()
    for letter in filter(str.isalnum, sorted(IGNORED)):
        text = f"##{letter * 20_000}"
        assert Guard()(text) == text
        assert commands(Guard()(f"##{letter * 30}[error]x")) == []
    assert time.process_time() - began < 10


@given(st.lists(st.one_of(st.sampled_from(COMMANDS), st.text(max_size=5)), max_size=5))
def test_json_keeps_its_value(words: list[str]) -> None:
    facts = {"words": words, "".join(words): 1}
    text = in_json(json.dumps(facts, indent=2))
    assert json.loads(text) == facts
    assert Guard()(text) == text and commands(text) == []


def test_ci_is_recognized_by_the_variables_of_its_systems() -> None:
    assert not is_ci({}) and not is_ci({"GITHUB_ACTIONS": ""})
    assert all(is_ci({name: "true"}) for name in SYSTEMS)


@pytest.mark.parametrize("lasts", [False, True])
def test_streams_of_a_command_on_ci_are_guarded(
    monkeypatch: pytest.MonkeyPatch, lasts: bool
) -> None:
    reading, writing = os.pipe()
    with (
        os.fdopen(reading, encoding="utf-8", newline="") as read,
        os.fdopen(writing, "w", encoding="utf-8") as both,
    ):
        monkeypatch.setattr(sys, "stdout", both)
        monkeypatch.setattr(sys, "stderr", both)
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        stdio.guard_against_commands()
        if lasts:
            stdio.outlive_readers()
        print("::add-mask::é", flush=True)
        sys.stderr.write(":")
        sys.stderr.write(":error::x\n")
        for stream in (sys.stdout, sys.stderr):
            stream.close()
        both.close()
        assert read.read() == ": :add-mask::é\n: :error::x\n"


def test_output_to_a_file_or_a_terminal_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SYSTEMS:
        monkeypatch.delenv(name, raising=False)
    with (tmp_path / "file").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        stdio.guard_against_commands()
        assert sys.stdout is file
        monkeypatch.setenv("GITLAB_CI", "true")
        stdio.guard_against_commands()
        print("::x::", flush=True)
    assert (tmp_path / "file").read_text() == "::x::\n"
