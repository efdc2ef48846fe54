"""CONTRIBUTING's map shows the tree as it is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.make import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:cluster_kit|images|tests|templates|compose|docs)/[\w./-]*)`")
FILE = r"`((?:cluster_kit|images|tests)/[\w./-]+\.py)`"
NAMES_IN = re.compile(rf"((?:`\w+`(?:, | and | or )?)+) (?:in|of) {FILE}")
IN_NAMES = re.compile(rf"{FILE}:? \(?((?:`\w+`(?:, | and | or )?)+)")
ROOMS = re.compile(r"^\| \d+ \| `(cluster_kit/[^`]+)` \|", re.MULTILINE)
FLOORS = re.compile(r"^\| (\d+) \| `cluster_kit/(\w+)", re.MULTILINE)
NOT_ROOMS = {"__init__.py", "__main__.py"}


def rooms() -> set[str]:
    """Every package below cluster_kit/, and every module in its root."""
    kit = ROOT / "cluster_kit"
    packages = {file.parent for file in kit.glob("*/**/__init__.py")}
    modules = {file for file in kit.glob("*.py") if file.name not in NOT_ROOMS}
    shown = {f"{path.relative_to(ROOT).as_posix()}/" for path in packages}
    return shown | {path.relative_to(ROOT).as_posix() for path in modules}


def test_the_map_has_every_room_and_no_other() -> None:
    assert set(ROOMS.findall(TEXT)) == rooms()


def test_the_map_shows_each_room_once() -> None:
    assert len(ROOMS.findall(TEXT)) == len(rooms())


def test_the_floors_are_those_that_import_linter_holds() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (c["layers"] for c in contracts["contracts"] if c["id"] == "host-layers")
    held = {
        room: floor for floor, rooms in enumerate(reversed(layers)) for room in rooms.split(" | ")
    }
    shown = [(room, int(floor)) for floor, room in FLOORS.findall(TEXT)]
    assert [floor for _, floor in shown] == sorted((floor for _, floor in shown), reverse=True)
    assert shown == [(room, held[room]) for room, _ in shown]


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
