"""The classic `pipeline.config` of the Object Detection API, translated to this pipeline's fields.

What has a field here is moved to it; what has no effect on an SSD as it is built here is left
aside and said so; anything else is a problem, with its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.programs.detection.config.classic.aside import ASIDE
from trainer.programs.detection.config.classic.fields import BLOCKS, CHANGED, FIELDS, REPEATED
from trainer.programs.detection.config.errors import Problem, nearest, short
from trainer.programs.detection.text_format import Message, Word


@dataclass(frozen=True)
class Translated:
    """Tables as TOML would have them; `written` gives each place's line and name in the file."""

    tables: dict[str, Any]
    written: Mapping[str, str] = field(default_factory=dict)
    left_aside: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A value of the file under its path, `model.ssd.num_classes`; {} for a block."""

    path: str
    value: Any
    line: int

    @property
    def where(self) -> str:
        return f"line {self.line}: {self.path}"


class Translation:
    """Gathers what `translate` gives back, entry by entry."""

    def __init__(self) -> None:
        self.tables: dict[str, Any] = {}
        self.written: dict[str, str] = {}
        self.left_aside: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.refused: set[str] = set()

    def add(self, entry: Entry) -> None:
        if entry.path in BLOCKS:
            place, value = BLOCKS[entry.path]
            self.put(place, value)
            self.written.setdefault(place.rpartition(".")[0], entry.where)
        elif entry.path in CHANGED:
            place, change = CHANGED[entry.path]
            try:
                self.take(entry, place, change(entry.value))
            except ValueError as problem:
                self.wrong(entry, str(problem), "change it, or write the pipeline as TOML")
        elif entry.path in FIELDS:
            self.take(entry, FIELDS[entry.path], entry.value)
        elif known := is_aside(entry.path):
            self.left_aside.setdefault(known, entry.line)
        elif entry.path not in self.refused:
            self.refused.add(entry.path)
            self.wrong(entry, "not known here", nearest_of(entry.path))

    def take(self, entry: Entry, place: str, value: Any) -> None:
        if place not in REPEATED and place in self.written and self.at(place) != value:
            rule = f"another value than {self.written[place]} = {short(self.at(place))}"
            self.wrong(entry, rule, "give both the same value")
            return
        if place in REPEATED:
            value = (*(self.at(place) or ()), value)
        self.put(place, value)
        self.written[place] = entry.where

    def at(self, place: str) -> Any:
        table: Any = self.tables
        for name in place.split("."):
            table = table.get(name) if isinstance(table, dict) else None
        return table

    def put(self, place: str, value: Any) -> None:
        *above, key = place.split(".")
        table = self.tables
        for name in above:
            table = table.setdefault(name, {})
        table[key] = value

    def wrong(self, entry: Entry, rule: str, cure: str) -> None:
        self.problems.append(Problem(entry.where, short(entry.value), rule, cure))


def translate(message: Message) -> Translated:
    """A classic configuration's fields under their names here, and what could not be taken."""
    translation = Translation()
    for entry in entries(message, ""):
        translation.add(entry)
    aside = tuple(
        f"line {line}: {path}: {ASIDE[path]}" for path, line in translation.left_aside.items()
    )
    return Translated(translation.tables, translation.written, aside, tuple(translation.problems))


def entries(message: Message, above: str) -> Iterator[Entry]:
    """Every value; of the blocks those that are empty, unknown, or mean something by themselves.

    What is in an unknown one is left out.
    """
    for item in message:
        path = f"{above}.{item.name}" if above else item.name
        match item.value:
            case Message() as block if path in FIELDS:
                yield Entry(path, {inner.name: inner.value for inner in block}, item.line)
            case Message() as block:
                unknown = path not in KNOWN and not is_aside(path)
                if path in BLOCKS or unknown or not block.fields:
                    yield Entry(path, {}, item.line)
                if not unknown:
                    yield from entries(block, path)
            case Word(text=text):
                yield Entry(path, text, item.line)
            case value:
                yield Entry(path, value, item.line)


def is_aside(path: str) -> str:
    """The entry of ASIDE that `path` is or lies in, "" if there is none."""
    return next((known for known in ASIDE if f"{path}.".startswith(f"{known}.")), "")


def prefixes(path: str) -> Iterator[str]:
    """`a`, `a.b`, `a.b.c` of `a.b.c`."""
    parts = path.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


KNOWN = {part for path in (*FIELDS, *BLOCKS, *CHANGED, *ASIDE) for part in prefixes(path)}


def nearest_of(path: str) -> str:
    """A cure, from what may stand in the same block."""
    above, _, name = path.rpartition(".")
    known = [p.rpartition(".")[2] for p in KNOWN if p.rpartition(".")[0] == above]
    return nearest(name, known, "known there")
