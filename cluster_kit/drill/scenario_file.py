"""Finds and reads a scenario, with every problem of its shape."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from cluster_kit.drill.scenario import At, Bounds, Expect, Fault, Scenario
from cluster_kit.errors import ManifestError, UsageError
from cluster_kit.manifest.load import first, names
from cluster_kit.problem import Problem
from cluster_kit.util.kit_files import MANIFESTS
from cluster_kit.util.nearest import proposal
from cluster_kit.util.toml_text import to_toml

FOLDER = "drills"
"""Below the manifests."""
KIT = MANIFESTS / FOLDER
"""Those that come with the kit."""
LONGEST = 60


@dataclass(frozen=True)
class Written:
    """A scenario as far as it is valid, its problems, and its source for messages.

    `numbers` are those of its valid faults, as they are counted in the file, from 1.
    """

    scenario: Scenario
    source: str
    problems: tuple[Problem, ...] = ()
    numbers: tuple[int, ...] = ()


def find(reference: str, folder: Path) -> Path:
    """The scenario file with this path, or with this name in `folder`; raises UsageError."""
    if file := first(reference, folder, KIT):
        return file
    raise UsageError(
        f"no scenario `{reference}`: neither a file nor a name in {folder}/",
        proposal(Path(reference).stem, names(folder, KIT)),
    )


def load(path: Path) -> Written:
    """The scenario in a file.

    Raises:
        ManifestError: the file cannot be read, or is not TOML.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        rule = getattr(error, "strerror", None) or f"not valid TOML: {error}"
        hint = "docs/drills.md shows a scenario"
        raise ManifestError(str(path), [Problem(path.name, "", rule, hint)]) from None
    return parse(raw, str(path))


def parse(raw: Mapping[str, Any], source: str) -> Written:
    """The scenario of these tables; each fault is read by itself, so that all problems are told."""
    problems: list[Problem] = []
    given = raw.get("fault", [])
    if not isinstance(given, list) or not given:
        hint = "write one: `[[fault]]`, then its kind, task and at"
        problems.append(Problem("fault", "", "at least one fault is required", hint))
        given = []
    read = {n: _read(Fault, f"fault {n}", one, problems) for n, one in enumerate(given, 1)}
    faults = {number: fault for number, fault in read.items() if fault is not None}
    expect = _read(Expect, "expect", raw.get("expect", {}), problems)
    rest = {key: value for key, value in raw.items() if key not in ("fault", "expect")}
    scenario = _read(Scenario, "", rest, problems) or Scenario()
    scenario = scenario.model_copy(
        update={"fault": tuple(faults.values()), "expect": expect or Expect()}
    )
    return Written(scenario, source, tuple(problems), tuple(faults))


Table = TypeVar("Table", bound=BaseModel)


def _read(table: type[Table], where: str, raw: object, problems: list[Problem]) -> Table | None:
    """The table of these values; None, and its problems among the others, if it is invalid."""
    try:
        return table.model_validate(raw)
    except ValidationError as error:
        problems += [_problem(table, where, detail) for detail in error.errors()]
        return None


def _problem(table: type[BaseModel], where: str, detail: Any) -> Problem:
    """The problem for one of pydantic's error details, in the words of a scenario."""
    keys = [str(part) for part in detail["loc"]]
    key_path = f"{where}: {'.'.join(keys)}" if where and keys else where or ".".join(keys)
    kind, value = detail["type"], to_toml(detail.get("input"))
    value = value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"
    known = _keys_beside(table, keys)
    there = f"keys there: {', '.join(known)}"
    if kind == "missing":
        return Problem(key_path, "", "is required", there)
    if kind == "extra_forbidden":
        return Problem(key_path, value, "no such key", proposal(keys[-1], known))
    rule = str(detail["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
    rule, _, hint = rule.partition("; ")
    return Problem(key_path, value, rule, hint or there)


def _keys_beside(table: type[BaseModel], keys: Sequence[str]) -> list[str]:
    """The keys of the table in which the last of `keys` is, or of the one that it names."""
    inner = _INNER.get(keys[0], table) if keys else table
    return [field.alias or name for name, field in inner.model_fields.items()]


_INNER: Mapping[str, type[BaseModel]] = {"at": At, "metrics": Bounds}
