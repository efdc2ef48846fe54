"""From a TOML file and command-line overrides to a Manifest, with every problem of its shape."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cluster_kit.errors import ManifestError, UsageError
from cluster_kit.manifest.command_line import Caller, CommandLine, render_command
from cluster_kit.manifest.problems import keys_of, problem_of
from cluster_kit.manifest.schema import Manifest
from cluster_kit.problem import Problem
from cluster_kit.util.nearest import proposal
from cluster_kit.util.paths import MANIFESTS, is_directory, is_file


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
            in_order = sorted(dict.fromkeys(problems), key=self._position)
            raise self.command_line.error(self.path, in_order)

    def _position(self, problem: Problem) -> int:
        keys = list(type(self.manifest).model_fields)
        key = _key(problem.key_path)
        return keys.index(key) if key in keys else len(keys)

    def certain(self, problem: Problem) -> bool:
        """Whether a problem is the manifest's own, and not one of a default in an invalid key."""
        broken_keys = {_key(key_path) for key_path in self.broken}
        return problem.key_path not in self.broken and broken_keys.isdisjoint(problem.reads)


def _key(key_path: str) -> str:
    return key_path.partition(".")[0]


def load(
    path: Path,
    overrides: Mapping[str, Any] | None = None,
    root: Path | None = None,
    by_set: frozenset[str] = frozenset(),
    caller: Caller = Caller.SHELL,
    *,
    model: type[Manifest],
) -> Loaded:
    """The manifest in a file, with the overrides merged into its tables.

    `extra_args` among the overrides are appended to the file's `args`.

    Args:
        root: the folder in which `Loaded.command` is to be typed.
        by_set: the overrides' keys that `--set` gave: messages name that instead of their option.
        caller: in whose words messages name what was given.
        model: the manifest's, with the tables of all platforms (`schema.with_platforms`).
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
    read = _validated(raw, path, CommandLine.of(given, added, by_set, caller), model)
    return replace(read, command=render_command(path, overrides or {}, root)) if root else read


def _validated(
    raw: dict[str, Any], path: Path, command_line: CommandLine, model: type[Manifest]
) -> Loaded:
    """The manifest of these values, with a default and a problem for each invalid one.

    A value that pydantic refuses is removed and the rest is validated again, since one error can
    hide another.
    """
    problems: list[Problem] = []
    broken: set[str] = set()
    for _ in range(20):
        try:
            manifest = model.model_validate(raw)
            read = Loaded(manifest, path, tuple(problems), frozenset(broken), command_line)
            return replace(read, values=raw)
        except ValidationError as error:
            for detail in error.errors():
                key_path = keys_of(detail["loc"])
                problem = problem_of(key_path, detail, model)
                if problem.key_path not in broken:
                    problems.append(problem)
                    broken.add(problem.key_path)
                _remove(raw, key_path, path)
    raise command_line.error(path, problems)


def _read(path: Path) -> dict[str, Any]:
    """The file's tables and values; raises ManifestError if it cannot be read."""
    try:
        # Some editors begin a file with a byte order mark.
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        rule, hint = f"cannot be read: {error.strerror}", "name a file that you may read"
    except UnicodeDecodeError as error:
        rule, hint = f"not valid TOML: {error}", "save the file as UTF-8"
    except RecursionError:
        rule, hint = "not valid TOML: nested too deeply", "a manifest has three levels at most"
    except ValueError as error:
        rule, hint = f"not valid TOML: {error}", "fix the line it names"
    raise ManifestError(str(path), [Problem(path.name, "", rule, hint)])


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """A new table with the values of both; for a key in both, that of `above`."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        tables = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = _merged(inner, value) if tables and inner is not None else value
    return merged


def _remove(raw: dict[str, Any], key_path: Sequence[str], path: Path) -> None:
    """Remove an invalid value from `raw`, so that other checks use its default."""
    table: Any = raw
    for part in key_path[:-1]:
        inner = table.get(part)
        if not isinstance(inner, dict):
            table.pop(part, None)
            return
        table = inner
    table.pop(key_path[-1], None)
    if list(key_path) == ["format"]:
        raw["format"] = 1
    if list(key_path) == ["name"]:
        raw["name"] = path.stem


def find(reference: str, folder: Path) -> Path:
    """The manifest file with this path, or with this name in `folder`, or one of the kit's own.

    Raises:
        UsageError: it was not found; the hint lists the names that exist.
    """
    if file := first(reference, folder, MANIFESTS):
        return file
    path, known = Path(reference), names(folder, MANIFESTS)
    if reference and is_directory(path):
        raise UsageError(
            f"no manifest `{reference}`: this is a directory, and a manifest is a TOML file",
            f"name a file in it, or a name in {folder}/; {proposal(path.stem, known)}",
        )
    raise UsageError(
        f"no manifest `{reference}`: no file, no name in {folder}/, and none of the kit's own",
        proposal(path.stem, known),
    )


def first(reference: str, *folders: Path) -> Path | None:
    """The file with this path, else the first with this name in the folders; None without one."""
    named = (folder / f"{reference}.toml" for folder in folders)
    return next((file.resolve() for file in (Path(reference), *named) if is_file(file)), None)


def names(*folders: Path) -> list[str]:
    """The names of the TOML files in these folders, sorted, each once."""
    return sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
