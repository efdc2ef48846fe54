"""A manifest that has been read, and which of the problems found with it can be told. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cluster_kit.manifest.schema import Manifest
from cluster_kit.manifest.typed import Typed
from cluster_kit.problem import Problem


@dataclass(frozen=True)
class Loaded:
    """A manifest to plan with, what is wrong with its shape, and where it came from.

    If `problems` is not empty, the manifest holds defaults in the broken places (`broken`), so that
    a plan can still find what else is wrong; it is never run. `typed` are the values that the
    command line gave.
    """

    manifest: Manifest
    path: Path
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = frozenset()
    typed: Typed = field(default_factory=Typed)

    def refuse(self, found: Iterable[Problem] = ()) -> None:
        """Raises ManifestError if anything is wrong: its shape, or what a rule found in it.

        Each problem is told once, in the manifest's order.
        """
        problems = [*self.problems, *filter(self.certain, found)]
        if problems:
            raise self.typed.error(self.path, sorted(dict.fromkeys(problems), key=_position))

    def certain(self, problem: Problem) -> bool:
        """Whether a problem is the manifest's own, and not that of a default in a broken place."""
        broken_keys = {_key(place) for place in self.broken}
        return problem.place not in self.broken and broken_keys.isdisjoint(problem.reads)


def _position(problem: Problem) -> int:
    keys = list(Manifest.model_fields)
    key = _key(problem.place)
    return keys.index(key) if key in keys else len(keys)


def _key(place: str) -> str:
    return place.partition(".")[0]
