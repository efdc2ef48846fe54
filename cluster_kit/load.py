"""From a TOML file and command-line overrides to a Manifest, with every problem of shape."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cluster_kit.errors import ManifestError, Problem, UsageError
from cluster_kit.manifest import Manifest, TaskLimits


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


def find(reference: str, folder: Path) -> Path:
    """The manifest file that a person means: a path, or a name in `folder` (compose/).

    Raises:
        UsageError: there is none; the cure lists the names that exist.
    """
    given = Path(reference)
    for candidate in (given, folder / f"{reference}.toml"):
        if candidate.is_file():
            return candidate.resolve()
    names = sorted(path.stem for path in folder.glob("*.toml"))
    near = difflib.get_close_matches(reference, names, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    raise UsageError(
        f"no manifest `{reference}`: neither a file nor a name in {folder}/",
        f"{hint}there are: {', '.join(names) or 'none'}",
    )


def load(path: Path, overrides: Mapping[str, Any] | None = None) -> Loaded:
    """Read a manifest and lay the overrides over it, table by table.

    `extra_args` among the overrides is added after the manifest's own `args`.

    Raises:
        ManifestError: the file is no TOML at all.
    """
    raw = _merged(_read(path), dict(overrides or {}))
    if isinstance(raw.get("args", []), list):
        raw["args"] = [*raw.get("args", []), *raw.pop("extra_args", [])]
    problems: list[Problem] = []
    broken: set[str] = set()
    for _ in range(20):
        try:
            manifest = Manifest.model_validate(raw)
            return Loaded(manifest, path, tuple(problems), frozenset(broken))
        except ValidationError as error:
            for detail in error.errors():
                place = [str(part) for part in detail["loc"]]
                problem = _problem(place, detail)
                if problem.place not in broken:
                    problems.append(problem)
                    broken.add(problem.place)
                _mend(raw, place, path)
    raise ManifestError(str(path), problems)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        problem = Problem(path.name, "", f"not valid TOML: {error}", "mend the line it names")
        raise ManifestError(str(path), [problem]) from None


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


def _problem(place: Sequence[str], detail: Any) -> Problem:
    kind, value = detail["type"], detail.get("input")
    dotted = ".".join(_visible(place))
    if kind == "missing":
        default = "1" if dotted == "format" else '"my-cluster"'
        return Problem(dotted, "", "is required", f"add `{dotted} = {default}`")
    if kind == "extra_forbidden":
        return Problem(dotted, _short(value), "no such key", _nearest(place))
    if dotted == "format":
        rule = "this kit reads format 1"
        return Problem(dotted, _short(value), rule, "write `format = 1`, or use the kit it is for")
    message = str(detail["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    rule = message if message.startswith(("a size", "a duration")) else f"must be {message}"
    if dotted == "gpus":
        rule = 'must be "none", "auto" or a list'
    return Problem(dotted, _short(value), rule, _meaning(place))


def _visible(place: Sequence[str]) -> list[str]:
    """A union's branch is pydantic's word, not a key of the file."""
    return [part for part in place if not part.startswith(("literal[", "list[", "function-"))]


def _short(value: Any) -> str:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def _table(place: Sequence[str]) -> Any:
    """The model that the last key of `place` stands in, None where there is no such table."""
    model: Any = Manifest
    for part in place[:-1]:
        if model is None:
            model = TaskLimits
        elif part == "task":
            model = None
        elif part in model.model_fields:
            model = model.model_fields[part].annotation
        else:
            return None
    return model


def _nearest(place: Sequence[str]) -> str:
    table = _table(place)
    known = sorted(table.model_fields) if table else []
    near = difflib.get_close_matches(place[-1], known, n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"


def _meaning(place: Sequence[str]) -> str:
    """What the key is for, from its own description."""
    visible = _visible(place)
    table = _table(visible)
    info = getattr(table, "model_fields", {}).get(visible[-1])
    meaning = info.description if info else None
    return f"{visible[-1]}: {meaning}" if meaning else "see the README's table of options"
