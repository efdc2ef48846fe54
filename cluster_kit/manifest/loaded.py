"""A manifest that has been read, and which of its problems are certain. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_kit.manifest.command_line import CommandLine
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem


@dataclass(frozen=True)
class Loaded:
    """A manifest to plan with, the problems of its shape, and the source of its values.

    If there are `problems`, the manifest holds the defaults of the invalid keys (`broken`), so that
    a plan can find what else is wrong; such a manifest is never run.
    """

    manifest: Manifest
    path: Path
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()
    command_line: CommandLine = field(default_factory=CommandLine)
    command: str = ""
    """What renders this manifest with these values; "" if it is not known where."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The tables as written, with the overrides and what was fitted to the program."""

    def refuse(self, broken_rules: Iterable[Problem] = ()) -> None:
        """Raises ManifestError if the manifest's shape is invalid or it breaks a rule.

        The error has each problem once, in the manifest's order.
        """
        problems = [*self.problems, *filter(self.certain, broken_rules)]
        if problems:
            raise self.command_line.error(self.path, sorted(dict.fromkeys(problems), key=_position))

    def certain(self, problem: Problem) -> bool:
        """Whether a problem is the manifest's own, and not one of a default in an invalid key."""
        broken_keys = {_key(place) for place in self.broken}
        return problem.place not in self.broken and broken_keys.isdisjoint(problem.reads)


def _position(problem: Problem) -> int:
    keys = list(Manifest.model_fields)
    key = _key(problem.place)
    return keys.index(key) if key in keys else len(keys)


def _key(place: str) -> str:
    return place.partition(".")[0]
