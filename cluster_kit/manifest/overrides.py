"""Problems with what the command line gave: told as its options, not as keys of the file. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cluster_kit.errors import ManifestError, Problem
from cluster_kit.manifest.override_table import BY_KEY


@dataclass(frozen=True)
class Given:
    """A key that the command line gave, and how."""

    key: str

    @property
    def place(self) -> str:
        if self.key not in BY_KEY:
            return f"--set {self.key} (make: SET)"
        return f"{BY_KEY[self.key].option} (make: {BY_KEY[self.key].variable})"

    def with_value(self, value: str) -> str:
        """What to type for it to have this value, in TOML."""
        plain = json.loads(value) if value.startswith('"') else value
        if self.key not in BY_KEY:
            return f"`--set {shlex.quote(f'{self.key}={plain}')}`"
        option, variable = BY_KEY[self.key].option, BY_KEY[self.key].variable
        return f"`{option} {shlex.quote(plain)}` (make: `{shlex.quote(f'{variable}={plain}')}`)"


def told(error: ManifestError, overrides: Mapping[str, Any]) -> ManifestError:
    """The same error, naming the option for every problem that the command line brought in."""
    given = [Given(key) for key in _keys(overrides)]
    added = {f'"{argument}"' for argument in overrides.get("extra_args", [])}
    problems, typed = [], 0
    for problem in error.problems:
        place = _place(problem, given, added)
        typed += place is not None
        problems.append(
            replace(problem, place=place or problem.place, cure=_cure(problem.cure, given))
        )
    source = error.source
    if typed:
        source = "the command line" if typed == len(problems) else f"{source} and the command line"
    return ManifestError(source, problems)


def _keys(overrides: Mapping[str, Any], table: str = "") -> Iterator[str]:
    for name, value in overrides.items():
        if isinstance(value, dict):
            yield from _keys(value, f"{table}{name}.")
        elif name != "extra_args":
            yield f"{table}{name}"


def _place(problem: Problem, given: Iterable[Given], added: set[str]) -> str | None:
    if problem.place.startswith("args.") and problem.value in added:
        return Given("args").place
    return next((one.place for one in given if one.key == problem.place), None)


def _cure(cure: str, given: Iterable[Given]) -> str:
    for one in given:
        key, value = one.key.rpartition(".")[2], r'("(?:[^"\\]|\\.)*"|[A-Za-z0-9.+-]+)'
        for found in re.finditer(f"`{re.escape(key)} = {value}`", cure):
            cure = cure.replace(found[0], one.with_value(found[1]))
        cure = cure.replace(f"raise `{one.key}`", f"raise {one.place}")
    return cure
