"""What the command line gave, and how its keys and settings are told: as its options. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.errors import ManifestError
from cluster_kit.manifest.overrides import SET_OPTION, SET_VARIABLE, override_of
from cluster_kit.problem import IN_FILE, Problem, Setting
from cluster_kit.util.toml_text import written


@dataclass(frozen=True)
class Typed:
    """The places of a manifest whose values the command line gave; every other is the file's.

    An argument that was added has a place of its own: `args.3`.
    """

    places: frozenset[str] = frozenset()

    def place(self, key: str) -> str:
        """The option and the Make variable of a key that was typed, else the key itself."""
        return name_of(key) if key in self.places else key

    def setting(self, setting: Setting, place: str) -> str:
        """What to type, if the problem's or the setting's own value was typed; else TOML."""
        if self.places.isdisjoint((place, setting.key)):
            return IN_FILE.setting(setting, place)
        value = setting.value
        return to_type(setting.key, value if isinstance(value, str) else written(value))

    def error(self, path: Path, problems: Sequence[Problem]) -> ManifestError:
        """The error that tells these problems, and whether they are in the file or were typed."""
        typed = sum(problem.place in self.places for problem in problems)
        source = f"{path} and the command line" if typed else str(path)
        return ManifestError(
            "the command line" if typed == len(problems) else source, problems, self
        )


def name_of(key: str) -> str:
    """`--workers (make: N_WORKERS)`."""
    override = override_of(key)
    if override is None:
        return f"{SET_OPTION} {key} (make: {SET_VARIABLE})"
    return f"{override.option} (make: {override.variable})"


def to_type(key: str, value: str) -> str:
    """`` `--workers 2` (make: `N_WORKERS=2`) ``, or `` `--set port=2222` ``."""
    override = override_of(key)
    if override is None:
        return f"`{SET_OPTION} {shlex.quote(f'{key}={value}')}`"
    word = shlex.quote(value)
    return f"`{override.option} {word}` (make: `{override.variable}={word}`)"


def typed(overrides: Mapping[str, Any], added: range) -> Typed:
    """What these overrides give, and the arguments that were added to the file's, by number."""
    return Typed(frozenset([*_keys(overrides), *(f"args.{number}" for number in added)]))


def _keys(overrides: Mapping[str, Any], table: str = "") -> Iterator[str]:
    for name, value in overrides.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{table}{name}.")
        else:
            yield f"{table}{name}"
