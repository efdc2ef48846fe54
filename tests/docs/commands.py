"""The commands that the pages show, and the words with which each calls the kit."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer.core import TyperGroup
from typer.exceptions import Exit

from docs.blocks.command_line import application
from tests.docs.markdown import Page, all_pages
from tests.make import ROOT

RUN, SHOWN, ELSEWHERE = "run", "shown", "elsewhere"
PROMPT = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)
GOES_ON = re.compile(r" *\\\n *")
COMMENT = re.compile(r"  +# .*$")
TO_SHELL = re.compile(r" \\?[|>] .*$")
"""The part of a line for the shell: redirections and pipes. In a table the bar is escaped."""
PLACEHOLDER = re.compile(r"…|\b(NAME|VERB|MANIFEST)\b")


@dataclass(frozen=True)
class Command:
    """A line after a prompt. `mark` says how it is tested; `date`: when its output was recorded."""

    page: str
    mark: str
    date: str
    line: str

    @property
    def words(self) -> list[str]:
        return [os.path.expandvars(word) for word in shlex.split(self.line)]


def in_blocks(page: Page) -> Iterator[Command]:
    """Yields every command in the page's blocks, without a `# …` at its end."""
    for block in page.blocks:
        _, _, rest = block.info.partition(" ")
        mark, _, date = rest.partition(" ")
        for text in PROMPT.findall(block.text):
            line = COMMENT.sub("", GOES_ON.sub(" ", text))
            yield Command(page.name, mark, date, line)


def in_prose(page: Page) -> Iterator[Command]:
    """Yields the kit's commands within sentences, except those with a placeholder."""
    for span in page.spans:
        line = TO_SHELL.sub("", span)
        if line.startswith(("make ", "cluster-kit ")) and not PLACEHOLDER.search(line):
            yield Command(page.name, "", "", line)


def everywhere() -> list[Command]:
    return [command for page in all_pages().values() for command in in_blocks(page)]


def words_for_kit(command: Command) -> list[str] | None:
    """Returns the words after `cluster-kit`, also if make calls it; None if the kit is not called.

    Raises:
        AssertionError: make has no such target or variable.
    """
    words = command.words
    if words[0] == "cluster-kit":
        return words[1 : next((n for n, word in enumerate(words) if word in "|>"), None)]
    if words[0] != "make":
        return None
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *words[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command.page}: {command.line}: {done.stderr}"
    calls = [line for line in done.stdout.splitlines() if line.startswith(".venv/bin/cluster-kit ")]
    return shlex.split(TO_SHELL.sub("", calls[-1]))[1:] if calls else None


def parsed(words: list[str]) -> dict[str, Any]:
    """Returns the arguments and options that the command line finds in these words.

    Raises:
        Exception: click's own, for a verb or an option that does not exist.
    """
    command, rest = application(), list(words)
    while isinstance(command, TyperGroup) and rest and not rest[0].startswith("-"):
        command = command.commands[rest.pop(0)]
    if not rest:
        return {}
    try:
        return dict(command.make_context("cluster-kit", rest).params)
    except Exit:  # --help
        return {}
