"""From a TOML file and command-line overrides to a Manifest, with every problem of shape."""

from __future__ import annotations

import copy
import difflib
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cluster_kit.errors import ManifestError, Problem, UsageError
from cluster_kit.manifest.schema import DeadlineTable, Limits, Manifest, TaskLimits
from cluster_kit.manifest.toml_text import dotted, written
from cluster_kit.util.nearest import proposal


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
        if holds(candidate.is_file):
            return candidate.resolve()
    if reference and holds(given.is_dir):
        raise UsageError(
            f"no manifest `{reference}`: this is a directory, and a manifest is a TOML file",
            f"name a file in it, or a name in {folder}/; {proposal(given.stem, names(folder))}",
        )
    raise UsageError(
        f"no manifest `{reference}`: neither a file nor a name in {folder}/",
        proposal(given.stem, names(folder)),
    )


def names(folder: Path) -> list[str]:
    """The manifests in `folder`, by name."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def holds(question: Callable[[], bool]) -> bool:
    """A question to a path: what can be none at all, or is behind a closed door, is not there."""
    try:
        return question()
    except (OSError, ValueError):
        return False


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
                place = _place(detail["loc"])
                problem = _problem(place, detail)
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


def _place(loc: Sequence[object]) -> list[str]:
    """Keys of the file only: inside `gpus`, a union, pydantic names its branches as well."""
    place = [str(part) for part in loc]
    return place[:1] if place[0] == "gpus" else place


def _problem(place: Sequence[str], detail: Any) -> Problem:
    kind, value, key = detail["type"], _short(detail.get("input")), dotted(place)
    if kind == "missing":
        default = "1" if key == "format" else '"my-cluster"'
        return Problem(key, "", "is required", f"add `{key} = {default}`")
    if kind == "extra_forbidden":
        return Problem(key, value, "no such key", _nearest(place))
    if key == "format":
        rule = "this kit reads format 1"
        return Problem(key, value, rule, "write `format = 1`, or use the kit it is for")
    return Problem(key, value, _rule(key, detail), _meant(place[-1], detail) or _meaning(place))


def _meant(key: str, detail: Any) -> str:
    """The one of a key's few words that is nearest to what was written."""
    if detail["type"] != "literal_error" or not isinstance(detail.get("input"), str):
        return ""
    words = re.findall(r"'([^']*)'", detail["ctx"]["expected"])
    near = difflib.get_close_matches(detail["input"], words, n=1)
    return f"did you mean `{key} = {written(near[0])}`?" if near else ""


_TYPES = {
    "string_type": "must be a text in quotes",
    "string_unicode": "must be valid Unicode",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "list_type": "must be a list",
    "dict_type": "must be a table",
    "model_type": "must be a table",
}


def _rule(key: str, detail: Any) -> str:
    if key == "gpus":
        return 'must be "none", "auto" or a list of indexes or UUIDs'
    if detail["type"] in _TYPES:
        return _TYPES[detail["type"]]
    message = str(detail["msg"])
    if detail["type"] == "value_error":
        return message.removeprefix("Value error, ")
    return "must be " + message.removeprefix("Input should be ")


def _short(value: Any) -> str:
    shown = written(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def _table(place: Sequence[str]) -> Any:
    """The model that the last key of `place` stands in, None where there is no such table."""
    model: Any = Manifest
    for depth, part in enumerate(place[:-1]):
        if depth == 1 and place[0] == "task":
            model = TaskLimits
        elif part in getattr(model, "model_fields", {}):
            model = model.model_fields[part].annotation
        else:
            return None
    return model if hasattr(model, "model_fields") else None


_ONE_TASK = dict.fromkeys(TaskLimits.model_fields, "under [task.worker-0]")
_EVERY_TASK = dict.fromkeys(Limits.model_fields, "under [role.worker] or [task.worker-0]")
_DEADLINE = dict.fromkeys(DeadlineTable.model_fields, "under [deadline]")
_TOP = dict.fromkeys(Manifest.model_fields, "at the top, above the first [table]")
HOMES = _ONE_TASK | _EVERY_TASK | _DEADLINE | _TOP
"""Where each key of a manifest stands."""


def _nearest(place: Sequence[str]) -> str:
    """The key that was meant: one of this table, or one that belongs elsewhere."""
    table = _table(place)
    known = sorted(table.model_fields) if table else []
    near = difflib.get_close_matches(place[-1], [*known, *HOMES], n=1, cutoff=0.6)
    if not near:
        return f"known keys: {', '.join(known)}"
    meant = "" if near[0] == place[-1] else f"did you mean `{near[0]}`?"
    home = "" if near[0] in known else f"write it {HOMES[near[0]]}"
    return f"{meant} {home}".strip()


def _meaning(place: Sequence[str]) -> str:
    """What the key is for, from the description of the nearest key that has one."""
    for end in range(len(place), 0, -1):
        info = getattr(_table(place[:end]), "model_fields", {}).get(place[end - 1])
        if info is not None and info.description:
            key, usual = place[end - 1], info.default
            if end < len(place) or not isinstance(usual, str | int | float):
                return f"{key}: {info.description}"
            whole = isinstance(usual, float) and usual.is_integer()
            example = written(int(usual) if whole else usual)
            return f"for example `{key} = {example}`: {info.description}"
    return "see docs/manifest.md"
