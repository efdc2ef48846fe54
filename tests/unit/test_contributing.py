"""The files and names that CONTRIBUTING sends a reader to exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.make import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:cluster_kit|images|tests|templates|compose|docs)/[\w./-]*)`")
FILE = r"`((?:cluster_kit|images|tests)/[\w./-]+\.py)`"
NAMES_IN = re.compile(rf"((?:`\w+`(?:, | and | or )?)+) (?:in|of) {FILE}")
IN_NAMES = re.compile(rf"{FILE}:? \(?((?:`\w+`(?:, | and | or )?)+)")


def test_what_it_tells_to_open_is_there() -> None:
    named = set(NAMED.findall(TEXT))
    assert len(named) > 30
    assert not sorted(path for path in named if not Path(ROOT, path).exists())


def test_the_names_in_files_are_there() -> None:
    """`judge` in `cluster_kit/run/verdict.py`, or `cluster_kit/plan/tasks.py` (`tasks_of`)."""
    named = {(file, words) for words, file in NAMES_IN.findall(TEXT)} | set(IN_NAMES.findall(TEXT))
    told = {(file, name) for file, words in named for name in re.findall(r"`(\w+)`", words)}
    assert len(told) > 30
    assert not sorted(
        (file, name)
        for file, name in told
        if not re.search(rf"\b{name}\b", Path(ROOT, file).read_text(encoding="utf-8"))
    )
