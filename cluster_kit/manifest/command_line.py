"""Which values the command line gave, and how messages name them: as its options. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_kit.errors import ManifestError
from cluster_kit.manifest.overrides import SET_OPTION, SET_VARIABLE, override_of
from cluster_kit.manifest.render_command import quoted
from cluster_kit.problem import IN_FILE, Problem, Setting
from cluster_kit.util.toml_text import to_toml


@dataclass(frozen=True)
class CommandLine:
    """The keys whose values the command line gave; every other value is the file's.

    An argument that was added to the file's has a key of its own: `args.3`. `by_set` are those that
    `--set` gave, also of keys that have an option of their own.
    """

    keys: frozenset[str] = frozenset()
    by_set: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, overrides: Mapping[str, Any], added: range, by_set: frozenset[str] = frozenset()
    ) -> CommandLine:
        """The keys of these overrides, and those of the arguments numbered `added`."""
        keys = [*_keys(overrides), *(f"args.{number}" for number in added)]
        return cls(frozenset(keys), by_set)

    def place(self, key: str) -> str:
        """The option and the Make variable if the command line gave the key, else the key."""
        if key not in self.keys:
            return key
        return _set_option(key) if key in self.by_set else option_of(key)

    def setting(self, setting: Setting, place: str) -> str:
        """The setting as an option if the command line gave it or the problem's key; else TOML."""
        if self.keys.isdisjoint((place, setting.key)):
            return IN_FILE.setting(setting, place)
        value = setting.value
        if isinstance(value, tuple) and setting.key == "args":
            value = " ".join(map(quoted, value))
        return option_text(setting.key, value if isinstance(value, str) else to_toml(value))

    def error(self, path: Path, problems: Sequence[Problem]) -> ManifestError:
        """The error of these problems; its source is the file, the command line, or both."""
        given = sum(map(self._gave, problems))
        source = f"{path} and the command line" if given else str(path)
        return ManifestError(
            "the command line" if given == len(problems) else source, problems, self
        )

    def _gave(self, problem: Problem) -> bool:
        """Whether the command line gave the value that is wrong, or the file that it is in.

        A place in a file, `train.py:3`, is of the key that the problem reads first.
        """
        in_file = ":" in problem.place and not self.keys.isdisjoint(problem.reads[:1])
        return problem.place in self.keys or in_file


def option_of(key: str) -> str:
    """The option that sets a key, and its Make variable: `--workers (make: N_WORKERS)`."""
    override = override_of(key)
    if override is None:
        return _set_option(key)
    return f"{override.option} (make: {override.variable})"


def _set_option(key: str) -> str:
    return f"{SET_OPTION} {key} (make: {SET_VARIABLE})"


def option_text(key: str, value: str) -> str:
    """What to type: `` `--workers 2` (make: `N_WORKERS=2`) ``, or `` `--set port=2222` ``."""
    override = override_of(key)
    if override is None or (override.kind == "switch" and value != "true"):
        return f"`{SET_OPTION} {shlex.quote(f'{key}={value}')}`"
    if override.kind == "switch":
        return f"`{override.option}` (make: `{override.variable}=1`)"
    word = shlex.quote(value)
    return f"`{override.option} {word}` (make: `{override.variable}={word}`)"


def _keys(overrides: Mapping[str, Any], table: str = "") -> Iterator[str]:
    """The dotted keys of nested tables."""
    for name, value in overrides.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{table}{name}.")
        else:
            yield f"{table}{name}"
