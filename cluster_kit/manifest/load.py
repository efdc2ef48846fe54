"""From a TOML file and command-line overrides to a Manifest, with every problem of shape."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cluster_kit.errors import ManifestError, Problem
from cluster_kit.manifest.problems import keys_of, problem_of
from cluster_kit.manifest.schema import Manifest


@dataclass(frozen=True)
class Loaded:
    """A manifest to plan with, what was wrong with its shape, and the file it came from.

    Where `problems` is not empty the manifest holds defaults in the broken places (`broken`), so
    that a plan can still find what else is wrong; it is never run.
    """

    manifest: Manifest
    path: Path
    problems: tuple[Problem, ...] = ()
    broken: frozenset[str] = field(default_factory=frozenset)


def load(path: Path, overrides: Mapping[str, Any] | None = None) -> Loaded:
    """Read a manifest and lay the overrides over it, table by table.

    `extra_args` among the overrides is added after the manifest's own `args`.

    Raises:
        ManifestError: the file cannot be read, or is no TOML at all.
    """
    given = copy.deepcopy(dict(overrides or {}))
    extra = given.pop("extra_args", [])
    raw = _merged(_read(path), given)
    if isinstance(raw.get("args", []), list):
        raw["args"] = [*raw.get("args", []), *extra]
    problems: list[Problem] = []
    broken: set[str] = set()
    for _ in range(20):
        try:
            manifest = Manifest.model_validate(raw)
            return Loaded(manifest, path, tuple(problems), frozenset(broken))
        except ValidationError as error:
            for detail in error.errors():
                place = keys_of(detail["loc"])
                problem = problem_of(place, detail)
                if problem.place not in broken:
                    problems.append(problem)
                    broken.add(problem.place)
                _mend(raw, place, path)
    raise ManifestError(str(path), problems)


def _read(path: Path) -> dict[str, Any]:
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
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = _merged(inner, value) if both and inner is not None else value
    return merged


def _mend(raw: dict[str, Any], place: Sequence[str], path: Path) -> None:
    """Take the broken value out, so that its default stands in for the rest of the checks."""
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
