"""From a TOML file and command-line overrides to a Manifest, with every problem of its shape."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cluster_kit.errors import ManifestError
from cluster_kit.manifest.command_line import CommandLine
from cluster_kit.manifest.loaded import Loaded
from cluster_kit.manifest.problems import keys_of, problem_of
from cluster_kit.manifest.render_command import render_command
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem


def load(
    path: Path,
    overrides: Mapping[str, Any] | None = None,
    root: Path | None = None,
    by_set: frozenset[str] = frozenset(),
) -> Loaded:
    """The manifest in a file, with the overrides merged into its tables.

    `extra_args` among the overrides are appended to the file's `args`.

    Args:
        root: the folder in which `Loaded.command` is to be typed.
        by_set: the overrides' keys that `--set` gave: messages name that instead of their option.
    Raises:
        ManifestError: the file cannot be read, or is not valid TOML.
    """
    given = copy.deepcopy(dict(overrides or {}))
    extra = given.pop("extra_args", [])
    raw = _merged(_read(path), given)
    file_args = raw.get("args", [])
    added = range(0)
    if isinstance(file_args, list) and extra:
        raw["args"] = [*file_args, *extra]
        added = range(len(file_args), len(raw["args"]))
    read = _validated(raw, path, CommandLine.of(given, added, by_set))
    return replace(read, command=render_command(path, overrides or {}, root)) if root else read


def _validated(raw: dict[str, Any], path: Path, command_line: CommandLine) -> Loaded:
    """The manifest of these values, with a default and a problem for each invalid one.

    A value that pydantic refuses is removed and the rest is validated again, since one error can
    hide another.
    """
    problems: list[Problem] = []
    broken: set[str] = set()
    for _ in range(20):
        try:
            manifest = Manifest.model_validate(raw)
            read = Loaded(manifest, path, tuple(problems), frozenset(broken), command_line)
            return replace(read, values=raw)
        except ValidationError as error:
            for detail in error.errors():
                place = keys_of(detail["loc"])
                problem = problem_of(place, detail)
                if problem.place not in broken:
                    problems.append(problem)
                    broken.add(problem.place)
                _remove(raw, place, path)
    raise command_line.error(path, problems)


def _read(path: Path) -> dict[str, Any]:
    """The file's tables and values; raises ManifestError if it cannot be read."""
    try:
        # Some editors begin a file with a byte order mark.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule, cure = f"cannot be read: {error.strerror}", "name a file that you may read"
    except UnicodeDecodeError as error:
        rule, cure = f"not valid TOML: {error}", "save the file as UTF-8"
    except RecursionError:
        rule, cure = "not valid TOML: nested too deeply", "a manifest has three levels at most"
    except ValueError as error:
        rule, cure = f"not valid TOML: {error}", "mend the line it names"
    raise ManifestError(str(path), [Problem(path.name, "", rule, cure)])


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """A new table with the values of both; for a key in both, that of `above`."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        tables = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = _merged(inner, value) if tables and inner is not None else value
    return merged


def _remove(raw: dict[str, Any], place: Sequence[str], path: Path) -> None:
    """Remove an invalid value from `raw`, so that other checks use its default."""
    table: Any = raw
    for part in place[:-1]:
        inner = table.get(part)
        if not isinstance(inner, dict):
            table.pop(part, None)
            return
        table = inner
    table.pop(place[-1], None)
    if list(place) == ["format"]:
        raw["format"] = 1
    if list(place) == ["name"]:
        raw["name"] = path.stem
